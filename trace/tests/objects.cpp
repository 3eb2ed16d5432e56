// Every form of new and delete, a number of times that differs; operator new that fails; an exception
// that passes through the recorder.
#include <cstddef>
#include <new>

namespace {
void *volatile kept;
struct alignas(64) wide {
	char text[64];
};
} // namespace

int main() {
	std::size_t size = 40, count = 10;
	for (int i = 0; i < 51; i++)
		kept = operator new(size), operator delete(kept);
	for (int i = 0; i < 52; i++)
		kept = operator new[](size), operator delete[](kept);
	for (int i = 0; i < 53; i++)
		kept = operator new(size, std::nothrow), operator delete(kept, std::nothrow);
	for (int i = 0; i < 54; i++)
		kept = operator new[](size, std::nothrow), operator delete[](kept, std::nothrow);
	for (int i = 0; i < 55; i++)
		kept = new wide, delete static_cast<wide *>(kept);
	for (int i = 0; i < 56; i++)
		kept = new wide[count], delete[] static_cast<wide *>(kept);
	for (int i = 0; i < 57; i++)
		kept = operator new(size), operator delete(kept, size);
	int failed = 0;
	for (int i = 0; i < 3; i++)
		try {
			kept = operator new(static_cast<std::size_t>(-1) / 4);
		} catch (const std::bad_alloc &) {
			failed++;
		}
	kept = operator new(size);
	return failed == 3 ? 0 : 1;
}
