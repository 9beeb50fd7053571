// SPDX-License-Identifier: BSD-3-Clause
// The only file that knows yaml-cpp.
#include "config/node.h"

#include <algorithm>
#include <array>
#include <istream>
#include <streambuf>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "config/guard.h"

namespace sluice::config {
namespace {

struct Stop {};  // unwinds yaml-cpp when reading on makes no sense

Position position(const YAML::Mark& mark) {
    return mark.is_null() ? Position{}
                          : Position{static_cast<std::uint32_t>(mark.line + 1),
                                     static_cast<std::uint32_t>(mark.column + 1)};
}

class ViewBuffer final : public std::streambuf {
public:
    explicit ViewBuffer(std::string_view text) {
        char* begin = const_cast<char*>(text.data());  // NOLINT: a get area is never written to
        setg(begin, begin, begin + text.size());
    }
};

class TreeBuilder final : public YAML::EventHandler {
public:
    TreeBuilder(std::string_view text, const TreeEvents& events) : text_(text), events_(events) {}

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) {
            report(position(mark), "a second document: a file is one configuration");
            throw Stop{};
        }
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        Node node{.at = position(mark)};
        if (const auto word = null_word(static_cast<std::size_t>(mark.pos)); !word.empty()) {
            node.kind = Node::Kind::kScalar;
            node.text = word;
        }
        refuse_anchor(node, anchor);
        attach(std::move(node));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
        Node node{.kind = Node::Kind::kBad, .at = position(mark)};
        report(node.at, "aliases (*name) are not used here: write the value out");
        attach(std::move(node));
    }
    void OnScalar(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  const std::string& value) override {
        Node node{.kind = Node::Kind::kScalar, .quoted = tag == "!", .at = position(mark)};
        node.text = value;
        refuse_tag(node, tag);
        refuse_anchor(node, anchor);
        attach(std::move(node));
    }
    void OnSequenceStart(const YAML::Mark& mark,
                         const std::string& tag,
                         YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override {
        open(Node::Kind::kList, mark, tag, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark,
                    const std::string& tag,
                    YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        open(Node::Kind::kMap, mark, tag, anchor);
    }
    void OnMapEnd() override { close(); }

    void report(Position at, std::string what) {
        if (!events_.on_error(at, std::move(what))) {
            throw Stop{};
        }
    }

    /// What there is, closing what is still open.
    Node take() {
        while (!open_.empty()) {
            Node node = std::move(open_.back());
            open_.pop_back();
            if (node.kind == Node::Kind::kMap && node.items.size() % 2 != 0) {
                node.items.pop_back();
            }
            if (open_.empty()) {
                root_ = std::move(node);
            } else {
                open_.back().items.push_back(std::move(node));
            }
        }
        return std::move(root_);
    }

private:
    bool wants_key() const {
        return !open_.empty() && open_.back().kind == Node::Kind::kMap &&
               open_.back().items.size() % 2 == 0;
    }

    /// yaml-cpp tells "nothing" and the words null and ~ alike, and puts "nothing" where the
    /// next token begins. A word that starts there and is followed by ':' is then the next key.
    std::string_view null_word(std::size_t pos) const {
        const std::string_view rest = text_.substr(std::min(pos, text_.size()));
        for (const std::string_view word :
             std::array<std::string_view, 4>{"null", "Null", "NULL", "~"}) {
            if (!rest.starts_with(word)) {
                continue;
            }
            const auto next = rest.find_first_not_of(" \t", word.size());
            const bool before_colon = next != std::string_view::npos && rest[next] == ':';
            return before_colon && !wants_key() ? std::string_view{} : word;
        }
        return {};
    }

    void refuse_tag(Node& node, const std::string& tag) {
        if (!tag.empty() && tag != "?" && tag != "!") {
            node.kind = Node::Kind::kBad;
            report(node.at, fmt::format("tags ({}) are not used here: leave it out", tag));
        }
    }
    void refuse_anchor(Node& node, YAML::anchor_t anchor) {
        if (anchor != YAML::NullAnchor) {
            report(node.at, "anchors (&name) are not used here: leave it out");
        }
    }

    void open(Node::Kind kind,
              const YAML::Mark& mark,
              const std::string& tag,
              YAML::anchor_t anchor) {
        Node node{.kind = kind, .at = position(mark)};
        if (wants_key()) {
            report(node.at, "a list or mapping as a key: keys are plain words");
            throw Stop{};
        }
        if (open_.size() >= kMaxDepth) {
            report(node.at, fmt::format("nested deeper than {} levels", kMaxDepth));
            throw Stop{};
        }
        refuse_tag(node, tag);
        refuse_anchor(node, anchor);
        node.kind = kind;
        open_.push_back(std::move(node));
        if (streams()) {
            nodes_before_item_ = nodes_;
        }
    }

    void close() {
        Node node = std::move(open_.back());
        open_.pop_back();
        if (node.kind == Node::Kind::kMap) {
            drop_duplicates(node);
        }
        attach(std::move(node));
    }

    void drop_duplicates(Node& map) {
        std::unordered_map<std::string_view, Position> seen;
        std::vector<Node> kept;
        kept.reserve(map.items.size());
        for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
            kept.push_back(std::move(map.items[i]));  // stays in place: `seen` views its text
            const Node& key = kept.back();
            const auto [first, is_new] = seen.try_emplace(key.text, key.at);
            if (is_new || key.kind == Node::Kind::kBad) {
                kept.push_back(std::move(map.items[i + 1]));
                continue;
            }
            report(key.at,
                   fmt::format("'{}' is here twice, first at line {} column {}: keep one",
                               key.text,
                               first->second.line,
                               first->second.column));
            kept.pop_back();
        }
        map.items = std::move(kept);
    }

    std::string_view last_key(const Node& map) const {
        return map.kind == Node::Kind::kMap && map.items.size() % 2 == 1
                   ? std::string_view{map.items.back().text}
                   : std::string_view{};
    }

    /// True when the list that is open now is one whose items are passed on at once.
    bool streams() const {
        const auto depth = open_.size();
        if ((depth != 2 && depth != 4) || open_.back().kind != Node::Kind::kList) {
            return false;
        }
        const auto list = last_key(open_[depth - 2]);
        return (list == "routes" || list == "neighbors") &&
               (depth == 2 || last_key(open_[0]) == "netns");
    }

    void attach(Node&& node) {
        if (open_.empty()) {
            root_ = std::move(node);
            return;
        }
        if (streams()) {
            nodes_ = nodes_before_item_;
            if (++streamed_ > kMaxStreamedItems) {
                report(node.at,
                       fmt::format("more than {} routes and neighbors", kMaxStreamedItems));
                throw Stop{};
            }
            const auto netns = open_.size() == 4 ? last_key(open_[1]) : std::string_view{};
            if (!events_.on_item(netns, last_key(open_[open_.size() - 2]), node)) {
                throw Stop{};
            }
            return;
        }
        if (++nodes_ > kMaxNodes) {
            report(node.at,
                   fmt::format("more than {} values besides routes and neighbors", kMaxNodes));
            throw Stop{};
        }
        open_.back().items.push_back(std::move(node));
    }

    std::string_view text_;
    const TreeEvents& events_;
    std::vector<Node> open_;
    Node root_;
    std::size_t documents_ = 0;
    std::size_t nodes_ = 0;
    std::size_t nodes_before_item_ = 0;
    std::size_t streamed_ = 0;
};

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

Tree read_tree(std::string_view text, const TreeEvents& events) {
    if (text.starts_with(kByteOrderMark)) {
        text.remove_prefix(kByteOrderMark.size());
    }
    auto screened = screen(text, [&](std::string_view list, const Node& item) {
        return events.on_item({}, list, item);
    });
    if (screened.finding) {
        events.on_error(screened.finding->at, std::move(screened.finding->what));
    }
    ViewBuffer buffer{screened.rest};
    std::istream stream{&buffer};
    TreeBuilder builder{screened.rest, events};
    bool complete = false;
    try {
        YAML::Parser parser{stream};
        while (parser.HandleNextDocument(builder)) {
        }
        complete = !screened.finding;
    } catch (const Stop&) {
        complete = false;
    } catch (const YAML::Exception& e) {
        events.on_error(position(e.mark), fmt::format("not YAML: {}", e.msg));
    }
    return {.root = builder.take(), .complete = complete};
}

}  // namespace sluice::config
