# Writes those blocks of the files named that are programs, each into a file of its own: the first
# ```cpp with a main() to FOLDER/example_1.cc, the next ```c with one to FOLDER/example_2.c, and so
# on; prints their names.
/^```(c|cpp)$/ { language = substr($0, 4); text = ""; next }
/^```$/ && language != "" {
  if (text ~ /int main\(/) {
    name = sprintf("example_%d.%s", ++count, language == "c" ? "c" : "cc")
    printf "%s", text >(FOLDER "/" name)
    print name
  }
  language = ""
}
language != "" { text = text $0 "\n" }
