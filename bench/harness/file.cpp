/* bench/harness/file.cpp */
#include "harness/file.h"

#include <cerrno>
#include <cstdio>

namespace bench {

std::string read_file(const std::string &path, size_t most) {
	std::string text;
	FILE *f = std::fopen(path.c_str(), "rb");
	if (f == nullptr)
		return text;
	char buffer[1 << 16];
	for (size_t n; text.size() <= most && (n = std::fread(buffer, 1, sizeof buffer, f)) > 0;)
		text.append(buffer, n);
	if (std::ferror(f))
		text.clear();
	int error = errno;
	std::fclose(f);
	errno = error;
	return text;
}

}
