/* bench/heap/json.cpp: the family `heap`: a document is parsed into a tree, which is freed node by
 * node or dropped with the whole heap. */
#include "heap/subjects.h"

#include <cjson/cJSON.h>
#include <jansson.h>

#include <cstdio>
#include <cstdlib>

#include "harness/file.h"

namespace bench {
namespace {

/* From Debian's iso-codes; 36 KB. */
constexpr const char *document_path = "/usr/share/iso-codes/json/iso_639-2.json";

class jansson {
public:
	using tree = json_t;

	static void prepare(const heap_hooks &hooks) {
		json_set_alloc_funcs(hooks.malloc, hooks.free);
		json_object_seed(1); /* fixed, because jansson's own choice differs from run to run */
	}
	static tree *parse(const std::string &text) {
		return json_loadb(text.data(), text.size(), 0, nullptr);
	}
	static char *print(const tree *t) {
		return json_dumps(t, JSON_COMPACT);
	}
	static void free(tree *t) {
		json_decref(t);
	}
};

class cjson {
public:
	using tree = cJSON;

	static void prepare(const heap_hooks &hooks) {
		cJSON_Hooks own{hooks.malloc, hooks.free};
		cJSON_InitHooks(&own);
	}
	static tree *parse(const std::string &text) {
		return cJSON_ParseWithLength(text.data(), text.size());
	}
	static char *print(const tree *t) {
		return cJSON_PrintUnformatted(t);
	}
	static void free(tree *t) {
		cJSON_Delete(t);
	}
};

/* Drops the whole heap with the tree, where the heap has a drop. */
template <class Parser> class json_client : public heap_client {
public:
	json_client(const heap_hooks &hooks, bool drops)
		: heap_client(hooks, false), drops_(drops && hooks.drop != nullptr) {
	}

	uint64_t run(size_t repeats) override {
		take_over();
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++)
			end(Parser::parse(text_));
		return ticks() - from;
	}

	/* The tree, printed again. */
	std::string result() {
		take_over();
		typename Parser::tree *tree = Parser::parse(text_);
		if (tree == nullptr)
			return "";
		char *printed = Parser::print(tree);
		std::string text = printed;
		hooks_.free(printed);
		end(tree);
		return text;
	}

private:
	void take_over() {
		hooks_.use(heap_);
		Parser::prepare(hooks_);
	}

	void end(typename Parser::tree *tree) {
		if (!drops_) {
			Parser::free(tree);
			return;
		}
		heap_ = hooks_.drop(heap_);
		hooks_.use(heap_);
	}

	const std::string text_ = read_file(document_path, SIZE_MAX - 1);
	bool drops_;
};

std::vector<workload> workloads() {
	if (read_file(document_path, 1).empty()) {
		std::fprintf(stderr, "jansson, cjson: left out; Debian's package iso-codes has the text\n");
		return {};
	}
	return {
		heap_workload<json_client<jansson>>("jansson-free", false),
		heap_workload<json_client<jansson>>("jansson-drop", true),
		heap_workload<json_client<cjson>>("cjson-free", false),
		heap_workload<json_client<cjson>>("cjson-drop", true),
	};
}

const registration json("heap", workloads);

}
}
