// The page of a fabric's picture, as tools/web has it.
#pragma once

namespace cepheus::tools {

extern const char kPageHtml[];
extern const char kPageCss[];
extern const char kPageJs[];

}  // namespace cepheus::tools
