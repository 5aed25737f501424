package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/safedial"
)

// TestProvidersAreDocumented checks that docs/providers.md lists the kinds of endpoints and their options as the code
// defines them. PARLEYTEST_UPDATE=1 writes the tables.
func TestProvidersAreDocumented(t *testing.T) {
	doc := read(t, "docs/providers.md")
	updated := doc
	for name, table := range map[string]string{"kinds": kindsTable(), "options": optionsTable()} {
		head, tail := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		before, rest, ok := strings.Cut(updated, head)
		_, after, found := strings.Cut(rest, tail)
		if !ok || !found {
			t.Fatalf("docs/providers.md has no table %s", name)
		}
		updated = before + head + table + tail + after
	}
	if updated == doc {
		return
	}
	if os.Getenv("PARLEYTEST_UPDATE") == "" {
		t.Fatal("the tables of docs/providers.md differ from the code; PARLEYTEST_UPDATE=1 go test -run TestProvidersAreDocumented . writes them")
	}
	if err := os.WriteFile("docs/providers.md", []byte(updated), 0o600); err != nil {
		t.Fatal(err)
	}
}

func kindsTable() string {
	var b strings.Builder
	b.WriteString("| kind | API | serves | URL |\n|---|---|---|---|\n")
	kinds := endpoints.Kinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[kind]
		var serves []string
		for _, s := range k.Serves {
			serves = append(serves, map[string]string{"asr": "recognizer", "llm": "model", "tts": "voice"}[s])
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", kind, k.Title, strings.Join(serves, ", "), k.URLs())
	}
	return b.String()
}

func optionsTable() string {
	set := endpoints.Set{Named: map[string]endpoints.Endpoint{}}
	for kind := range endpoints.Kinds() {
		set.Named[kind] = endpoints.Endpoint{Kind: kind}
	}
	p := set.Open(safedial.Rules{}).Current()
	var b strings.Builder
	b.WriteString("| provider | options | known parameters of `options` | languages |\n|---|---|---|---|\n")
	writeOptions(&b, "recognizer", p.Recognizers)
	writeOptions(&b, "model", p.Models)
	writeOptions(&b, "voice", p.Voices)
	return b.String()
}

func writeOptions[T any](b *strings.Builder, serves string, all map[string]T) {
	code := func(names []string) string {
		if len(names) == 0 {
			return "–"
		}
		return "`" + strings.Join(slices.Sorted(slices.Values(names)), "` `") + "`"
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var r pipeline.OptionRules
		if ruled, ok := any(all[name]).(pipeline.RuledProvider); ok {
			r = ruled.OptionRules()
		}
		takes := slices.DeleteFunc(slices.Clone(r.Takes), func(s string) bool { return s == "options" })
		languages := cmp.Or(strings.Join(slices.Sorted(slices.Values(r.Languages)), " "), "the provider decides")
		fmt.Fprintf(b, "| %s `%s` | %s | %s | %s |\n", serves, name, code(takes), code(r.Known), languages)
	}
}
