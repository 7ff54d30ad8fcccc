# Functions that embed files byte for byte, as C arrays that end with a NUL.

# embed_array(TEXT NAME FILE): appends to TEXT the definition of NAME, const char[] with FILE's bytes.
function(embed_array text name file)
	file(READ ${file} hex HEX)
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
	set(${text} "${${text}}const char ${name}[] = {${bytes}0};\n" PARENT_SCOPE)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()

# embed_write(OUT TEXT): writes the file, unless it has the text already, so that nothing is compiled anew.
function(embed_write out text)
	if(EXISTS ${out})
		file(READ ${out} old)
	endif()
	if(NOT "${old}" STREQUAL "${text}")
		file(WRITE ${out} "${text}")
	endif()
endfunction()

# embed_files(OUT FILE...): writes a C file with each FILE as a row of
#   const struct embedded_file embedded_files[] = { { "bpf_text/<file>", text }, ... {0} };
function(embed_files out)
	set(rows "")
	set(arrays "")
	set(n 0)
	foreach(file ${ARGN})
		get_filename_component(name ${file} NAME)
		string(APPEND arrays "static ")
		embed_array(arrays text_${n} ${file})
		string(APPEND rows "\t{\"bpf_text/${name}\", text_${n}},\n")
		math(EXPR n "${n} + 1")
	endforeach()
	embed_write(${out} "#include \"kernel/program_text.h\"\n\n${arrays}\nconst struct embedded_file embedded_files[] = {\n${rows}\t{0},\n};\n")
endfunction()
