# Compiles texts into the program: build/gen/whimbrel/migrate/embedded.cc holds one string each.
function(whimbrel_embed_migrate_data)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/migrate/data)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${folder}/onnx_ops.csv ${folder}/function_bodies.csv ${folder}/report.css ${folder}/report.js ${CHART_JS})
  file(READ ${folder}/onnx_ops.csv ONNX_OPS_CSV)
  file(READ ${folder}/function_bodies.csv FUNCTION_BODIES_CSV)
  file(READ ${folder}/report.css REPORT_CSS)
  file(READ ${folder}/report.js REPORT_JS)
  file(READ ${CHART_JS} CHART_JS_TEXT)
  configure_file(${folder}/embedded.cc.in ${WHIMBREL_GEN}/whimbrel/migrate/embedded.cc @ONLY)
  target_sources(whimbrel_migrate PRIVATE ${WHIMBREL_GEN}/whimbrel/migrate/embedded.cc)
endfunction()
