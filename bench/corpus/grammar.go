package corpus

import (
	_ "embed"
	"strings"
)

//go:embed heldout.txt
var heldOutTemplatesText string

//go:embed templates.txt
var templatesText string

// Marks in templates for possible pauses.
const (
	midMark      = "/"
	completeMark = "|"
)

// entries returns the lines of a text without comments (#) and empty lines.
func entries(text string) (all []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

// heldOutTemplates returns the templates for published figures. Nothing is tuned on them.
func heldOutTemplates() []string { return entries(heldOutTemplatesText) }

// templates returns the templates for development. The words before completeMark can be a complete turn.
func templates() []string { return entries(templatesText) }

// words returns the words that can replace a placeholder.
func words(name string) []string {
	var all string
	switch name {
	case "count":
		all = "two three four five six seven eight nine ten"
	case "number":
		all = "twelve fifteen twenty forty sixty eighty ninety"
	case "digit":
		all = "zero one two three four five six seven eight nine"
	case "day":
		all = "monday tuesday wednesday thursday friday saturday sunday tomorrow"
	case "hour":
		all = "six seven eight nine ten eleven noon"
	case "name":
		all = "miller garcia novak weber rossi tanaka silva kim okafor"
	case "street":
		all = "market church station garden river baker mill"
	case "city":
		all = "boston lisbon prague oslo madrid vienna denver turin"
	case "thing":
		all = "table phone chair lamp printer heater bicycle kettle camera"
	case "color":
		all = "red blue green black white yellow grey"
	case "relative":
		all = "wife husband sister brother mother father neighbour"
	}
	return strings.Fields(all)
}

// Backchannels returns words that only show attention.
func Backchannels() []string { return strings.Fields("mhm yeah okay right") }

// Commands returns words that tell the agent to be silent.
func Commands() []string { return strings.Fields("stop wait") }

// contents returns sentences that interrupt an answer.
func contents() []string {
	return []string{
		"no i meant the {color} {thing}", "actually make that {count}", "not on {day} but on {day}",
		"that is the wrong {thing}", "i said {city} not {city}", "but i already paid for the {thing}",
	}
}

// Content returns one interrupting sentence.
func (s *Speaker) Content() string {
	for {
		if text := s.fill(pick(s.rnd, contents())); !s.said[text] {
			s.said[text] = true
			return text
		}
	}
}
