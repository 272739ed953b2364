// ops: the op registry for people and programs, and the text of build/docs/OPS.md.

#include <algorithm>
#include <climits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/base/config.h"
#include "whimbrel/cli/command.h"
#include "whimbrel/kernels/kernels.h"

namespace whimbrel {
namespace {

struct OpsOptions {
  std::string op;
  std::string domain = "all";
  bool samples = false;
  bool markdown = false;

  void Visit(ConfigVisitor& v) {
    v.Field({.name = "op",
             .help = "only this op, with its formals, attributes and kernels",
             .value_name = "OP"},
            op);
    v.Field({.name = "domain",
             .help = "only this domain: ai.onnx, com.microsoft, whimbrel ...",
             .value_name = "DOMAIN"},
            domain);
    v.Field({.name = "samples",
             .help = "show the sample cases, which are test, benchmark and documentation at once"},
            samples);
    v.Field({.name = "markdown", .help = "as a Markdown page"}, markdown);
  }
};

// All versions of one op.
struct Op {
  std::string domain;
  std::string name;
  std::vector<const OpSchema*> versions;
  std::vector<const Kernel*> kernels;
};

std::string DomainName(std::string_view domain) {
  return std::string(domain.empty() ? "ai.onnx" : domain);
}

std::string_view LayoutName(LayoutRule rule) {
  switch (rule) {
    case LayoutRule::kPlain:
      return "plain";
    case LayoutRule::kFollow:
      return "follow";
    case LayoutRule::kChannelsLast:
      return "channels-last";
  }
  return "";
}

std::vector<std::string> TypeNames(TypeMask mask) {
  std::vector<std::string> names;
  for (unsigned t = 1; t < 32; ++t) {
    if ((mask >> t) & 1U) names.emplace_back(DTypeName(static_cast<DType>(t)));
  }
  return names;
}

std::string TypeText(TypeMask mask) {
  if (mask == kAllTypes) return "all types";
  if (mask == kNumericTypes) return "numbers";
  if (mask == kFloatTypes) return "floats";
  if (mask == kIntegerTypes) return "integers";
  return fmt::format("{}", fmt::join(TypeNames(mask), " "));
}

std::vector<Op> CollectOps(const OpsOptions& options) {
  std::vector<Op> ops;
  const Registry& registry = Registry::Get();
  for (const OpSchema* schema : registry.Schemas()) {
    const std::string domain = DomainName(schema->domain);
    if (options.domain != "all" && options.domain != domain) continue;
    if (!options.op.empty() && options.op != schema->name) continue;
    if (ops.empty() || ops.back().name != schema->name || ops.back().domain != domain) {
      Op op{domain, std::string(schema->name), {}, {}};
      for (const DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kCuda, DeviceKind::kAscend}) {
        const auto kernels = registry.Kernels(schema->domain, schema->name, kind);
        op.kernels.insert(op.kernels.end(), kernels.begin(), kernels.end());
      }
      ops.push_back(std::move(op));
    }
    ops.back().versions.push_back(schema);
  }
  return ops;
}

[[noreturn]] void FailNothingFound(const OpsOptions& options) {
  std::vector<std::string_view> names;
  std::vector<std::string> domains;
  for (const OpSchema* schema : Registry::Get().Schemas()) {
    names.push_back(schema->name);
    const std::string domain = DomainName(schema->domain);
    if (domains.empty() || domains.back() != domain) domains.push_back(domain);
  }
  const bool domain_known =
      options.domain == "all" || std::ranges::find(domains, options.domain) != domains.end();
  if (!domain_known) {
    throw Error(Code::kInvalidArgument,
                fmt::format("no op of domain '{}' is known", options.domain),
                fmt::format("domains: {}", fmt::join(domains, ", ")));
  }
  const std::string_view nearest = NearestWord(options.op, names);
  throw Error(
      Code::kInvalidArgument,
      fmt::format("no op '{}'{} is known", options.op,
                  options.domain == "all" ? "" : " of domain " + options.domain),
      nearest.empty() ? "'whimbrel ops' lists all" : fmt::format("did you mean {}?", nearest));
}

std::string Versions(const Op& op) {
  std::vector<std::string> parts;
  for (const OpSchema* schema : op.versions) {
    parts.push_back(schema->until == INT_MAX ? fmt::format("{}+", schema->since)
                    : schema->until - 1 == schema->since
                        ? fmt::format("{}", schema->since)
                        : fmt::format("{}-{}", schema->since, schema->until - 1));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string KernelNames(const Op& op) {
  std::vector<std::string> names;
  for (const Kernel* kernel : op.kernels) {
    std::string name(kernel->name);
    if (kernel->device != DeviceKind::kCpu)
      name = fmt::format("{}/{}", DeviceKindName(kernel->device), name);
    names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

Json FormalsJson(const std::vector<Formal>& formals) {
  Json list = Json::array();
  for (const Formal& formal : formals) {
    list.push_back({{"name", formal.name},
                    {"types", TypeNames(formal.types)},
                    {"optional", formal.optional},
                    {"variadic", formal.variadic},
                    {"group", formal.group}});
  }
  return list;
}

Json OpJson(const Op& op, bool samples) {
  Json versions = Json::array();
  for (const OpSchema* schema : op.versions) {
    Json version = {{"since", schema->since},
                    {"until", schema->until == INT_MAX ? Json(nullptr) : Json(schema->until)},
                    {"inputs", FormalsJson(schema->inputs)},
                    {"outputs", FormalsJson(schema->outputs)},
                    {"attributes", Json::array()},
                    {"matrix_op", schema->matrix_op},
                    {"doc", schema->doc}};
    for (const AttributeSpec& a : schema->attributes) {
      version["attributes"].push_back({{"name", a.name},
                                       {"type", AttributeTypeName(a.type)},
                                       {"required", a.required},
                                       {"note", a.note}});
    }
    if (samples) version["samples"] = schema->samples;
    versions.push_back(std::move(version));
  }
  Json kernels = Json::array();
  for (const Kernel* k : op.kernels) {
    kernels.push_back({{"name", k->name},
                       {"device", DeviceKindName(k->device)},
                       {"rank", k->rank},
                       {"isa", IsaName(k->isa)},
                       {"layout", LayoutName(k->layout)},
                       {"view", k->view}});
  }
  return {{"op", op.name},
          {"domain", op.domain},
          {"versions", std::move(versions)},
          {"kernels", std::move(kernels)}};
}

std::string FormalsText(const char* title, const std::vector<Formal>& formals) {
  std::string text;
  for (const Formal& formal : formals) {
    text += fmt::format("  {:<5}{:<16} {}{}{}\n", text.empty() ? title : "", formal.name,
                        TypeText(formal.types), formal.optional ? ", optional" : "",
                        formal.variadic ? ", any number" : "");
  }
  return text;
}

std::string SchemaText(const OpSchema& schema, bool samples) {
  std::string text =
      fmt::format("since {}{}\n", schema.since,
                  schema.until == INT_MAX ? "" : fmt::format(" until {}", schema.until));
  if (!schema.doc.empty()) text += fmt::format("  {}\n", schema.doc);
  text += FormalsText("in", schema.inputs);
  bool first = true;
  for (const AttributeSpec& a : schema.attributes) {
    text += fmt::format("  {:<5}{:<16} {}{}{}\n", first ? "attr" : "", a.name,
                        AttributeTypeName(a.type), a.required ? ", required" : "",
                        a.note.empty() ? "" : fmt::format(", {}", a.note));
    first = false;
  }
  text += FormalsText("out", schema.outputs);
  if (samples) {
    for (std::string_view sample : schema.samples) text += fmt::format("  sample  {}\n", sample);
  }
  return text;
}

std::string KernelTable(const Op& op, bool markdown) {
  Table table({"kernel", "device", "rank", "isa", "layout"});
  for (const Kernel* k : op.kernels) {
    table.Row({std::string(k->name), std::string(DeviceKindName(k->device)),
               std::to_string(k->rank), std::string(IsaName(k->isa)),
               std::string(LayoutName(k->layout))});
  }
  return markdown ? table.ToMarkdown() : table.ToText();
}

Table OverviewTable(const std::vector<Op>& ops) {
  Table table(
      {"op", "domain", "opsets", "types of the first input", "kernels, first choice first"});
  for (const Op& op : ops) {
    const OpSchema& last = *op.versions.back();
    table.Row({op.name, op.domain, Versions(op),
               last.inputs.empty() ? "-" : TypeText(last.inputs.front().types), KernelNames(op)});
  }
  return table;
}

std::string Markdown(const std::vector<Op>& ops, bool samples) {
  std::string text = fmt::format(
      "# Ops\n\nGenerated by `whimbrel ops --markdown` from the registry: {} ops.\n\n{}",
      ops.size(), OverviewTable(ops).ToMarkdown());
  for (const Op& op : ops) {
    text += fmt::format("\n## {}{}\n\n", op.name,
                        op.domain == "ai.onnx" ? "" : fmt::format(" ({})", op.domain));
    for (const OpSchema* schema : op.versions)
      text += fmt::format("```\n{}```\n\n", SchemaText(*schema, samples));
    text += KernelTable(op, true);
  }
  return text;
}

int RunOps(const OpsOptions& options, Output& out) {
  const std::vector<Op> ops = CollectOps(options);
  if (ops.empty()) FailNothingFound(options);
  if (out.json()) {
    Json list = Json::array();
    for (const Op& op : ops) list.push_back(OpJson(op, options.samples));
    out.Result({{"count", ops.size()}, {"ops", std::move(list)}});
    return 0;
  }
  if (options.markdown) {
    out.Text(Markdown(ops, options.samples));
    return 0;
  }
  if (options.op.empty() && !options.samples) {
    out.Text(OverviewTable(ops).ToText() + fmt::format("{} ops\n", ops.size()));
    return 0;
  }
  for (const Op& op : ops) {
    out.Text(fmt::format("{} ({})\n", op.name, op.domain));
    for (const OpSchema* schema : op.versions) out.Text(SchemaText(*schema, options.samples));
    out.Text(KernelTable(op, false) + "\n");
  }
  return 0;
}

const RegisterCommand<OpsOptions> kRegistered(
    {.name = "ops",
     .stage = Stage::kLook,
     .summary = "list the ops that are known, their versions, types and kernels",
     .description =
         "Kernels are tried from the highest rank down; one that cannot take a call says why "
         "('whimbrel compile\n"
         "--explain'). Layout: plain (row major), follow (as its inputs lie), channels-last.",
     .examples = {"whimbrel ops", "whimbrel ops --op Conv --samples",
                  "whimbrel ops --domain whimbrel --json",
                  "whimbrel ops --markdown --samples > OPS.md"}},
    RunOps);

}  // namespace
}  // namespace whimbrel
