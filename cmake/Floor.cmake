# whimbrel_floor(name): one folder of whimbrel/ as an object library; sources are globbed, so a new file needs no edit here.
# Object libraries keep self-registering files that a static library would drop at link time.

add_library(whimbrel_options INTERFACE)
target_include_directories(whimbrel_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(whimbrel_options INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(WHIMBREL_WITH_OPENMP)
  target_link_libraries(whimbrel_options INTERFACE OpenMP::OpenMP_CXX)
endif()
if(WHIMBREL_SANITIZE)
  target_compile_options(whimbrel_options INTERFACE -fsanitize=${WHIMBREL_SANITIZE} -fno-sanitize-recover=undefined)
  target_link_options(whimbrel_options INTERFACE -fsanitize=${WHIMBREL_SANITIZE})
endif()

function(whimbrel_floor name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/whimbrel/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  if(NOT sources)
    return()
  endif()
  add_library(whimbrel_${name} OBJECT ${sources})
  target_link_libraries(whimbrel_${name} PUBLIC whimbrel_options ${ARG_LIBS})
  set_property(GLOBAL APPEND PROPERTY WHIMBREL_FLOORS ${name})
endfunction()

# Links a program with the tower up to and including floor `top`: a test of a low floor waits for no higher one.
# Linking an object library directly brings its objects.
function(whimbrel_link target top)
  get_property(floors GLOBAL PROPERTY WHIMBREL_FLOORS)
  foreach(floor ${floors})
    target_link_libraries(${target} PRIVATE whimbrel_${floor})
    if(floor STREQUAL top)
      break()
    endif()
  endforeach()
endfunction()
