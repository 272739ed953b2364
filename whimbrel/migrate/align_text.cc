// The alignment's answer as JSON and as a table.

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "whimbrel/migrate/align.h"

namespace whimbrel {
namespace {

Json FiguresJson(const ErrorFigures& f) {
  return Json{{"cosine", f.cosine},           {"max_abs", f.max_abs},
              {"max_rel", f.max_rel},         {"worst_ratio", f.worst_ratio},
              {"worst_index", f.worst_index}, {"nan_mismatch", f.nan_mismatch}};
}

}  // namespace

Json ToJson(const AlignResult& result) {
  Json layers = Json::array();
  for (const AlignLayer& layer : result.layers) {
    layers.push_back(Json{{"name", layer.name},
                          {"op", layer.op},
                          {"cosine", layer.own.cosine},
                          {"max_abs", layer.own.max_abs},
                          {"max_rel", layer.own.max_rel},
                          {"ok", layer.ok},
                          {"tolerance", layer.tolerance},
                          {"worst_ratio", layer.own.worst_ratio},
                          {"worst_index", layer.own.worst_index},
                          {"chained", FiguresJson(layer.chained)},
                          {"kernel", layer.kernel},
                          {"output", layer.output},
                          {"origins", layer.origins}});
  }
  Json outputs = Json::array();
  for (const auto& output : result.outputs) {
    Json o = FiguresJson(output.figures);
    o["name"] = output.name;
    o["ok"] = output.ok;
    outputs.push_back(std::move(o));
  }
  return Json{{"verdict", result.pass ? "pass" : "fail"},
              {"first_bad_layer",
               result.first_bad_layer.empty() ? Json(nullptr) : Json(result.first_bad_layer)},
              {"reference", result.reference},
              {"device", result.device},
              {"inputs", result.inputs},
              {"reference_peak_bytes", result.peak_bytes},
              {"outputs", std::move(outputs)},
              {"layers", std::move(layers)}};
}

std::string ToText(const AlignResult& result) {
  std::string text = fmt::format("{:<44} {:<18} {:>10} {:>10} {:>10} {:>10}  {}\n", "layer", "op",
                                 "cosine", "max abs", "max rel", "chained", "of limit");
  size_t shown = 0;
  std::vector<const AlignLayer*> order;
  for (const AlignLayer& layer : result.layers) order.push_back(&layer);
  // Failures first, then the largest errors: nobody reads seven hundred zeros.
  std::stable_sort(order.begin(), order.end(), [](const AlignLayer* a, const AlignLayer* b) {
    return a->own.worst_ratio > b->own.worst_ratio;
  });
  for (const AlignLayer* layer : order) {
    if (layer->ok && shown >= 12) break;
    ++shown;
    std::string name =
        layer->name.size() > 44 ? "..." + layer->name.substr(layer->name.size() - 41) : layer->name;
    text += fmt::format("{:<44} {:<18} {:>10.7f} {:>10.2e} {:>10.2e} {:>10.2e}  {:.1f} %{}\n", name,
                        layer->op, layer->own.cosine, layer->own.max_abs, layer->own.max_rel,
                        layer->chained.max_abs, layer->own.worst_ratio * 100,
                        layer->ok ? "" : "  FAIL");
  }
  if (shown < order.size())
    text += fmt::format("... and {} layers with smaller errors (--json lists all)\n",
                        order.size() - shown);
  for (const auto& output : result.outputs) {
    text += fmt::format(
        "output {}: max abs {:.2e}, max rel {:.2e}, cosine {:.7f}, {:.1f} % of the limit{}\n",
        output.name, output.figures.max_abs, output.figures.max_rel, output.figures.cosine,
        output.figures.worst_ratio * 100, output.ok ? "" : "  FAIL");
  }
  text += fmt::format("{}: {} layers on {} against the {}", result.pass ? "PASS" : "FAIL",
                      result.layers.size(), result.device, result.reference);
  if (!result.first_bad_layer.empty())
    text += fmt::format("; first layer over tolerance: {}", result.first_bad_layer);
  return text + "\n";
}

}  // namespace whimbrel
