// The files of the fabric's web page, from tools/web.
#pragma once

namespace cepheus::tools {

extern const char kPageHtml[];
extern const char kPageCss[];
extern const char kPageJs[];

}  // namespace cepheus::tools
