"""Random ONNX models against ONNX Runtime: oracle, net, blocks_*, generate, case, engine, compare, in reading order."""
