// SPDX-License-Identifier: BSD-3-Clause
// The row of values against the library's tree: it takes what that takes, but for its bounds, and
// has the same in it.
#include "control/request_value.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sluice::control {
namespace {

using Library = nlohmann::ordered_json;

Library as_library(const Value& value) {
    using enum Value::Kind;
    switch (value.kind()) {
        case kNull:
            return nullptr;
        case kBool:
            return value.truth();
        case kNatural:
            return value.natural();
        case kNegative:
        case kFraction:
            return Library::parse(value.json());
        case kString:
            return std::string(value.text());
        case kArray: {
            Library array = Library::array();
            for (const Value& entry : value) {
                array.push_back(as_library(entry));
            }
            return array;
        }
        case kObject: {
            Library object = Library::object();
            for (const Value& entry : value) {
                object[std::string(entry.key())] = as_library(entry);
            }
            return object;
        }
    }
    return {};
}

bool is_double_key(std::string_view message) {
    return message.find("stands there twice") != std::string_view::npos ||
           message.find("nested deeper") != std::string_view::npos ||
           message.find("more than") != std::string_view::npos;
}

bool accepts(const std::string& text) {
    try {
        return !Library::parse(text).is_discarded();
    } catch (const Library::exception&) {
        return false;
    }
}

void compare(Document& document, const std::string& text) {
    const auto read = document.parse(text);
    if (!read && is_double_key(read.error().message)) {
        return;
    }
    ASSERT_EQ(read.has_value(), accepts(text)) << text << (read ? "" : read.error().message);
    if (!read) {
        return;
    }
    EXPECT_EQ(as_library(document.root()), Library::parse(text)) << text;
    EXPECT_EQ(Library::parse(document.root().json()), Library::parse(text)) << text;
}

TEST(RequestValue, OneByOne) {
    Document document;
    for (
        const std::string_view text :
        {R"({"id":1,"object":"route","command":"add","args":{"prefix":"192.0.2.0/24","mtu":1400}})",
         "[]",
         "{}",
         "[ ]",
         "{ }",
         "[1,2,3]",
         R"([[1],[],{"a":[]}])",
         "null",
         "true",
         "false",
         "nul",
         "truee",
         "0",
         "-0",
         "00",
         "01",
         "-",
         "-1",
         "1.",
         "1.5",
         ".5",
         "1e5",
         "1E+5",
         "1e",
         "1e+",
         "18446744073709551615",
         "18446744073709551616",
         "-9223372036854775808",
         "-9223372036854775809",
         R"("")",
         R"("a)",
         R"("\n\t\"\\\/\b\f\r")",
         R"("\x")",
         R"("\u0041")",
         R"("\u00e9\u20ac")",
         R"("\ud83d\ude00")",
         R"("\ud83d")",
         R"("\ude00")",
         R"("\ud83d\u0041")",
         R"("\u12")",
         R"("\u12g4")",
         "\"\xc3\xa9\"",
         "\"\xc0\x80\"",
         "\"\xed\xa0\x80\"",
         "\"\xf4\x90\x80\x80\"",
         "\"\xe2\x82\"",
         "\"\t\"",
         "\"\x7f\"",
         "[1,]",
         "[,1]",
         "[1 2]",
         R"({"a":1,})",
         R"({"a" 1})",
         R"({a:1})",
         R"({"a":1 "b":2})",
         "[1]]",
         "[1",
         "{",
         "",
         " ",
         " 1 ",
         "1 2",
         R"({"a":{"b":"c"},"d":[true,null]})",
         R"({"\u0061":1})",
         "\"a\\\xc3\xa9\""}) {
        SCOPED_TRACE(text);
        compare(document, std::string(text));
    }
}

// Each row has been through a mill: bytes cut, doubled, changed.
TEST(RequestValue, Mutated) {
    std::minstd_rand random(1);
    const std::vector<std::string> seeds{
        R"({"id":"x\u00e9","object":"route","command":"add","args":{"prefix":"192.0.2.0/24","mtu":1400}})",
        R"({"names":["p0","p\"1",null,true],"n":[-1,0,2.5e3,{"k":{}}]})",
        "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\"\\ud83d\\ude00\"]"};
    const std::string_view alphabet = "{}[]:,\"\\u0123eE+-. tfn\xc3\xa9\xf0\x80";
    Document document;
    for (int round = 0; round < 60'000; ++round) {
        std::string text = seeds[random() % seeds.size()];
        for (unsigned change = random() % 4; change != 0 && !text.empty(); --change) {
            const std::size_t at = random() % text.size();
            switch (random() % 3) {
                case 0:
                    text.erase(at, 1 + random() % 3);
                    break;
                case 1:
                    text[at] = alphabet[random() % alphabet.size()];
                    break;
                default:
                    text.insert(at, 1, alphabet[random() % alphabet.size()]);
            }
        }
        compare(document, text);
        if (testing::Test::HasFailure()) {
            return;
        }
    }
}

TEST(RequestValue, Bounds) {
    Document document;
    EXPECT_TRUE(document.parse("[[[[1]]]]"));
    EXPECT_FALSE(document.parse("[[[[[1]]]]]"));
    EXPECT_FALSE(document.parse(std::string(200'000, '[')));
    std::string keys = "{";
    for (int i = 0; i < 32; ++i) {
        keys += fmt::format(R"({}"k{}":{{"x":0}})", i == 0 ? "" : ",", i);
    }
    EXPECT_TRUE(document.parse(keys + "}"));
    EXPECT_EQ(document.root().find("k31")->find("x")->natural(), 0U);
    EXPECT_FALSE(document.parse(keys + R"(,"one more":0})"));
    EXPECT_FALSE(document.parse(R"({"a":{"b":0},"\u0061":1})")) << "the same key in other letters";
    // A long line before leaves nothing behind.
    EXPECT_TRUE(document.parse(fmt::format("[{}1]", std::string(100'000, ' '))));
    std::string many = "[0";
    for (int i = 0; i < 50'000; ++i) {
        many += ",0";
    }
    EXPECT_TRUE(document.parse(many + "]"));
    EXPECT_EQ(document.root().size(), 50'001U);
    EXPECT_TRUE(document.parse("7"));
    EXPECT_EQ(document.root().natural(), 7U);
}

}  // namespace
}  // namespace sluice::control
