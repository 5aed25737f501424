package ui

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

//go:embed texts/en/*.yaml
var textFiles embed.FS

// Texts are the texts of the dashboard in one language. Texts of Go code have keys, such as agents.list.title, in
// texts/en/agents.yaml. Texts of pages stand in the pages, and their English is their key.
type Texts struct {
	language language.Tag
	messages map[string]message
	pages    map[string]string
}

// A message is a text with placeholders such as {count}. Forms are the texts by plural form of the count, if they differ.
type message struct {
	text  string
	forms map[plural.Form]string
}

// pagesFile has the texts of pages in a translation.
const pagesFile = "pages.yaml"

// ReadTexts reads the English texts and, if it is not nil, a translation: a folder with files like those of texts/en, and
// pages.yaml. A text that the translation lacks stays English; one that English does not have is an error.
func ReadTexts(translation fs.FS) (*Texts, error) {
	t := &Texts{messages: map[string]message{}, pages: map[string]string{}}
	english, err := fs.Sub(textFiles, "texts/en")
	if err == nil {
		err = t.read(english, false)
	}
	if err == nil && translation != nil {
		err = t.read(translation, true)
	}
	if err != nil {
		return nil, fmt.Errorf("texts: %w", err)
	}
	return t, nil
}

func (t *Texts) read(from fs.FS, translates bool) error {
	names, err := fs.Glob(from, "*.yaml")
	if err == nil && len(names) == 0 {
		err = errors.New("no file *.yaml")
	}
	for _, name := range names {
		if err == nil {
			err = t.readFile(from, name, translates)
		}
	}
	return err
}

// readFile reads the texts of one file, whose only top-level key is the language.
func (t *Texts) readFile(from fs.FS, name string, translates bool) error {
	raw, err := fs.ReadFile(from, name)
	if err != nil {
		return err
	}
	var file map[string]map[string]message
	if err = yaml.Unmarshal(raw, &file); err != nil || len(file) != 1 {
		return errors.Join(fmt.Errorf("%s: expected one language", name), err)
	}
	for tag, messages := range file {
		if t.language, err = language.Parse(tag); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for key, m := range messages {
			if name == pagesFile {
				english := message{text: key}.placeholders()
				if strings.Contains(m.text, "{{") || !slices.Equal(english, m.placeholders()) { // {{ would become part of a template
					return fmt.Errorf("%s: %s: expected the placeholders %v, and no {{", name, key, english)
				}
				t.pages[key] = m.text
				continue
			}
			if english, ok := t.messages[key]; translates && (!ok || !slices.Equal(english.placeholders(), m.placeholders())) {
				return fmt.Errorf("%s: %s: expected a text that English has, with the placeholders %v", name, key, english.placeholders())
			}
			t.messages[key] = m
		}
	}
	return nil
}

// UnmarshalYAML reads a text, or its plural forms by the names of CLDR: one, few, many, other.
func (m *message) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Decode(&m.text)
	}
	forms := map[string]string{}
	if err := node.Decode(&forms); err != nil {
		return err
	}
	m.forms = map[plural.Form]string{}
	for i, name := range []string{"other", "zero", "one", "two", "few", "many"} {
		if text, ok := forms[name]; ok {
			m.forms[plural.Form(i)] = text
			delete(forms, name)
		}
	}
	if m.text = m.forms[plural.Other]; m.text == "" || len(forms) > 0 {
		return fmt.Errorf("line %d: expected the form other, and zero, one, two, few or many", node.Line)
	}
	return nil
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// placeholders returns the names in all forms, sorted.
func (m message) placeholders() []string {
	all := placeholder.FindAllString(m.text, -1)
	for _, text := range m.forms {
		all = append(all, placeholder.FindAllString(text, -1)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// page returns a text of a page.
func (t *Texts) page(english string) string {
	return cmp.Or(t.pages[english], english)
}

// Has reports whether there is a text with this key.
func (t *Texts) Has(key string) bool {
	_, ok := t.messages[key]
	return ok
}

// T returns a text with its placeholders replaced: names and values alternate. "count" decides about the plural form.
// TestTexts checks that each key in the code exists; an unknown key is shown itself.
func (t *Texts) T(key string, args ...any) string {
	m, ok := t.messages[key]
	if !ok {
		return key
	}
	if len(args) == 0 {
		return m.text
	}
	text, pairs := m.text, make([]string, 0, len(args))
	for i := 0; i+1 < len(args); i += 2 {
		value, isText := args[i+1].(string)
		if !isText {
			value = Count(args[i+1])
		}
		if n, err := strconv.Atoi(fmt.Sprint(args[i+1])); err == nil && args[i] == "count" && m.forms != nil {
			if form, ok := m.forms[plural.Cardinal.MatchPlural(t.language, n, 0, 0, 0, 0)]; ok {
				text = form
			}
		}
		pairs = append(pairs, fmt.Sprintf("{%v}", args[i]), value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Complete adds the period of the language to a text that does not end with a punctuation mark.
func (t *Texts) Complete(text string) string {
	if last, _ := utf8.DecodeLastRuneInString(text); text == "" || last == '…' || unicode.Is(unicode.STerm, last) {
		return text
	}
	return t.T("ui.sentence", "text", text)
}

// Sentence returns a complete text with its first letter in upper case.
func (t *Texts) Sentence(text string) string { return Capitalize(t.Complete(text)) }

// Label returns the text PREFIX.CODE. Without one it returns the code with spaces for underscores: a newer server may have
// written it.
func (t *Texts) Label(prefix, code string) string {
	if m, ok := t.messages[prefix+"."+code]; ok {
		return m.text
	}
	return strings.ReplaceAll(code, "_", " ")
}
