/* bench/arena/documents.cpp: the family `arena`: documents parsed by libcjson and dropped whole. */
#include "demo/cjson.h"
#include "harness/file.h"

#include <cstdio>

namespace bench {
namespace {

std::vector<document> iso_documents() {
	std::vector<document> all;
	for (document d : {document{"cjson-small", small_document}, {"cjson-large", large_document}}) {
		d.text = read_file(d.text, SIZE_MAX - 1);
		if (d.text.empty())
			std::fprintf(stderr, "%s left out: Debian's package iso-codes has it\n", d.label.c_str());
		else
			all.push_back(std::move(d));
	}
	return all;
}

std::vector<workload> workloads() {
	static const std::vector<document> documents = iso_documents();
	std::vector<workload> all;
	for (const document &d : documents)
		for (workload &w : cjson_workloads(d, inspect(d)))
			all.push_back(std::move(w));
	return all;
}

const registration documents("arena", workloads);

}
}
