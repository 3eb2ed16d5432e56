#include <tenure/scope.h>
