#include "population.h"

namespace {
population globals;
}
