/* bench/harness/file.h: files as text. */
#ifndef BENCH_HARNESS_FILE_H
#define BENCH_HARNESS_FILE_H

#include <cstddef>
#include <string>

namespace bench {

/* Empty, with errno set, when the file cannot be read. Reading stops soon after `most` bytes. */
std::string read_file(const std::string &path, size_t most);

}
#endif
