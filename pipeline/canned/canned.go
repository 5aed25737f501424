// Package canned holds the few lines that the agent says of its own accord.
package canned

import "strings"

// A Line is what the agent says of its own accord.
type Line uint8

// Lines.
const (
	Filler  Line = iota // while an answer takes its time
	Apology             // when something broke
	Nudge               // when nobody says anything
	Lines               // how many there are
)

// In returns the line in a language (BCP 47), empty where there is none.
func (l Line) In(language string) string {
	language, _, _ = strings.Cut(strings.ToLower(language), "-")
	texts := map[string][Lines]string{
		"":   {"One moment, please.", "Sorry, I did not get that. Could you say it again?", "Are you still there?"},
		"de": {"Einen Moment, bitte.", "Entschuldigung, das habe ich nicht verstanden. Können Sie es wiederholen?", "Sind Sie noch da?"},
		"es": {"Un momento, por favor.", "Perdone, no le he entendido. ¿Puede repetirlo?", "¿Sigue ahí?"}, //nolint:misspell // Spanish
		"fr": {"Un instant, s'il vous plaît.", "Pardon, je n'ai pas compris. Pouvez-vous répéter ?", "Vous êtes toujours là ?"},
		"kk": {"Бір сәт күтіңіз.", "Кешіріңіз, түсінбей қалдым. Қайталап жібересіз бе?", "Сіз әлі осындасыз ба?"},
		"ru": {"Одну минуту, пожалуйста.", "Извините, я не расслышал. Повторите, пожалуйста.", "Вы ещё здесь?"},
	}
	texts["en"] = texts[""]
	return texts[language][l]
}
