package ui

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

var (
	action = regexp.MustCompile(`\{\{.*?\}\}`)
	// apart matches what divides texts: tags, and actions that are not values.
	apart = regexp.MustCompile(
		`(?s)<[a-zA-Z/!](?:\{\{.*?\}\}|[^>])*>|\{\{-? *(?:if|else|end|range|with|define|block|template|break|continue|/\*|\$\w+ *:=).*?\}\}`,
	)
	shownAttribute = regexp.MustCompile(` (?:aria-label|title|placeholder|alt|data-label)="((?:\{\{.*?\}\}|[^"{]|\{)*)"`)
	fieldName      = regexp.MustCompile(`[.$](\w+)`)
	letters        = regexp.MustCompile(`\pL{2}`)
)

// TranslatePage replaces the texts of a page: those between tags, and attributes that people see. An action within a text is
// a placeholder with the name of its last field: {{count .Size.Tokens}} is {Tokens}. translate gets the English text; a
// translation cannot contain tags.
func TranslatePage(source string, translate func(english string) string) string {
	var out strings.Builder
	at := 0
	for _, m := range apart.FindAllStringIndex(source, -1) {
		out.WriteString(translateText(source[at:m[0]], translate))
		out.WriteString(replaceGroup(shownAttribute, source[m[0]:m[1]], func(value string) string { return translateText(value, translate) }))
		at = m[1]
	}
	out.WriteString(translateText(source[at:], translate))
	return out.String()
}

// replaceGroup replaces the first group of each match.
func replaceGroup(re *regexp.Regexp, text string, replace func(string) string) string {
	var out strings.Builder
	at := 0
	for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[at:m[2]] + replace(text[m[2]:m[3]]))
		at = m[3]
	}
	return out.String() + text[at:]
}

// translateText translates one text of a page and keeps the white space around it.
func translateText(raw string, translate func(string) string) string {
	text := strings.TrimSpace(raw)
	if !letters.MatchString(action.ReplaceAllString(text, "")) {
		return raw
	}
	names, actions := map[string]bool{}, []string{}
	english := action.ReplaceAllStringFunc(text, func(a string) string {
		name := "value"
		if fields := fieldName.FindAllStringSubmatch(a, -1); fields != nil {
			name = fields[len(fields)-1][1]
		}
		for n, first := 2, name; names[name]; n++ {
			name = fmt.Sprint(first, n)
		}
		names[name] = true
		actions = append(actions, "{"+name+"}", a)
		return "{" + name + "}"
	})
	english = html.UnescapeString(strings.Join(strings.Fields(english), " "))
	translated := translate(english)
	if translated == english {
		return raw
	}
	return strings.Replace(raw, text, strings.NewReplacer(actions...).Replace(html.EscapeString(translated)), 1)
}
