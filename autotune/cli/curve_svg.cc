#include "autotune/cli/curve_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace autotune::cli {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 420;
constexpr double kLeft = 70;
constexpr double kRight = 20;
constexpr double kTop = 40;
constexpr double kBottom = 50;
constexpr double kLowestPercent = 0.1;
constexpr double kHighestPercent = 1000;
constexpr int kTicks = 8;  // about, along the configs
// Told apart by people who do not see all colours (Okabe and Ito, 2008).
constexpr std::array<const char*, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                 "#cc79a7", "#e69f00", "#000000"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += letter;
    }
  }
  return out;
}

class Picture {
 public:
  explicit Picture(std::size_t configs) : configs_(std::max<std::size_t>(configs, 2)) {}

  double x(double config) const {
    return kLeft + (config - 1) / static_cast<double>(configs_ - 1) * (kWidth - kLeft - kRight);
  }
  double y(double percent) const {
    const double inside = std::clamp(percent, kLowestPercent, kHighestPercent);
    const double share =
        std::log(inside / kLowestPercent) / std::log(kHighestPercent / kLowestPercent);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }

  std::string axes() const {
    std::string svg;
    for (double percent = kLowestPercent; percent <= kHighestPercent * 1.01; percent *= 10) {
      svg += fmt::format(
          "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g} %</text>\n",
          kLeft, kWidth - kRight, y(percent), y(percent), kLeft - 6, y(percent) + 4, percent);
    }
    const auto step = std::max<std::size_t>(1, configs_ / kTicks);
    for (std::size_t config = step; config <= configs_; config += step) {
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                         x(static_cast<double>(config)), kHeight - kBottom + 18, config);
    }
    return svg + fmt::format(
                     "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">measured "
                     "configs</text>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 12);
  }

  // Steps: the best so far holds until something is better.
  std::string line(const search::Curve& curve, const char* colour, const char* style) const {
    std::string points;
    double last = 0;
    for (std::size_t i = 0; i < curve.size(); ++i) {
      if (!std::isfinite(curve[i])) continue;
      const double at = x(static_cast<double>(i + 1));
      const double height = y(100 * (curve[i] - 1));
      if (!points.empty()) points += fmt::format(" {:.1f},{:.1f}", at, last);
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", at, height);
      last = height;
    }
    return fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points,
        colour, style);
  }

 private:
  std::size_t configs_;
};

}  // namespace

std::string curve_svg(const std::string& title, const std::vector<NamedCurves>& curves) {
  std::size_t configs = 0;
  for (const NamedCurves& each : curves) configs = std::max(configs, each.middle.size());
  const Picture picture(configs);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"22\" font-size=\"14\">{3}</text>\n",
      kWidth, kHeight, kLeft, escaped(title));
  svg += picture.axes();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    svg += picture.line(curves[i].worst, colour, " stroke-dasharray=\"4 3\" opacity=\"0.6\"");
    svg += picture.line(curves[i].middle, colour, "");
    svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"{}\">{}</text>\n",
                    kWidth - kRight - 4, kTop + 14 + 16 * static_cast<double>(i), colour,
                    escaped(curves[i].name));
  }
  return svg + "</svg>\n";
}

}  // namespace autotune::cli
