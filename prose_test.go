package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dialect lists patterns that plain technical English does not need: passive reporting verbs, clauses instead of nouns,
// archaisms, and metaphors. See docs/glossary.md.
var dialect = []string{
	`(?:is|are|was|were|be|been) told`,
	`tells? (?:that|whether|of|what|who|how)`,
	`(?:of|to|for|with|by|from|against) (?:whom|who|what)`,
	`whom`, `anew`, `lest`, `beside`, `meanwhile`, `somebody`, `nobody`, `by now`,
	`(?:is|are|was|were) no (?:[a-km-z]\w*|l[a-np-z]\w*)`, // "is no longer" is plain
	`it is no`, `there is none`, `none is`,
	`of (?:ours|yours|theirs|its own|one's own)`,
	`(?:goes|going) on`, `for (?:ever|good)`,
	`what (?:comes?|came|becomes?|became) of`,
	`what is (?:said|told|asked|left|made)`,
	`where (?:nobody|none|nothing)`,
	`looks? after`, `gives? way`, `held against`, `in (?:its|their) place`,
	`(?:room|house|desk|shelf|keeper|mouth|ear|mind)s? of`,
}

// proseBounds holds the maximum number of dialect phrases per 1,000 words.
var proseBounds = map[string]float64{"strings": 0.3, "comments": 1.5, "docs": 0.8}

// spoken lists files of sentences that people and agents say.
var spoken = []string{"pipeline/conversation/phrase.go", "pipeline/eot/lexicon.go"}

// prose counts words and dialect phrases in one kind of text.
type prose struct {
	words, hits int
	worst       []string
}

var (
	phrase = regexp.MustCompile(`(?i)\b(?:` + strings.Join(dialect, "|") + `)\b`)
	word   = regexp.MustCompile(`[A-Za-z']+`)
	sql    = regexp.MustCompile(`\b(?:SELECT|UPDATE|INSERT|WHERE|FROM|JOIN|CREATE|ALTER)\b`)
	markup = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>|\{\{.*?\}\}|<[^>]*>`)
	quoted = regexp.MustCompile("\"((?:[^\"\\\\\n]|\\\\.)*)\"|`([^`]*)`")
	fence  = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
)

func (p *prose) add(where, text string) {
	p.words += len(word.FindAllString(text, -1))
	for _, hit := range phrase.FindAllString(text, -1) {
		p.hits++
		p.worst = append(p.worst, where+": "+hit)
	}
}

// addString adds a string literal if a person may read it: it has three words or more, and is not SQL.
func (p *prose) addString(where, text string) {
	if len(word.FindAllString(text, -1)) >= 3 && !sql.MatchString(text) {
		p.add(where, text)
	}
}

// TestProse limits dialect phrases in three kinds of text: strings that people see (Go outside tests, words of the
// dashboard, pages and their scripts), comments of Go code, and documentation.
func TestProse(t *testing.T) {
	t.Parallel()
	kinds := map[string]*prose{"strings": {}, "comments": {}, "docs": {}}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go":
			return goProse(kinds, name)
		case ".yaml":
			if strings.Contains(filepath.ToSlash(name), "/texts/en/") {
				kinds["strings"].add(name, read(t, name))
			}
		case ".html":
			kinds["strings"].add(name, markup.ReplaceAllString(read(t, name), " "))
		case ".js":
			for _, m := range quoted.FindAllStringSubmatch(read(t, name), -1) {
				kinds["strings"].addString(name, m[1]+m[2])
			}
		case ".md":
			kinds["docs"].add(name, fence.ReplaceAllString(read(t, name), " "))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, p := range kinds {
		if p.words < 1000 {
			t.Errorf("%s: found %d words: the test does not see the project", kind, p.words)
			continue
		}
		rate := 1000 * float64(p.hits) / float64(p.words)
		t.Logf("%s: %d phrases of the dialect in %d words, %.2f per 1,000", kind, p.hits, p.words, rate)
		if rate > proseBounds[kind] {
			slices.Sort(p.worst)
			t.Errorf("%s: %.2f phrases per 1,000 words, at most %.1f:\n%s", kind, rate, proseBounds[kind], strings.Join(p.worst[:min(40, len(p.worst))], "\n"))
		}
	}
}

func goProse(kinds map[string]*prose, name string) error {
	text, err := os.ReadFile(name)
	if err != nil || name == "prose_test.go" {
		return err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	where := func(pos token.Pos) string { return fmt.Sprintf("%s:%d", name, fset.Position(pos).Line) }
	for _, group := range f.Comments {
		kinds["comments"].add(where(group.Pos()), group.Text())
	}
	if strings.HasSuffix(name, "_test.go") || slices.Contains(spoken, filepath.ToSlash(name)) {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			kinds["strings"].addString(where(lit.Pos()), lit.Value)
		}
		return true
	})
	return nil
}
