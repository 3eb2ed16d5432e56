#include "population.h"

namespace {
population globals[2];
}
