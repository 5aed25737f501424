package conversation

import "strings"

// A phrase is a fixed line of the agent.
type phrase uint8

// Phrases.
const (
	phraseFiller    phrase = iota // said when an answer takes long
	phraseApology                 // said after a provider failed
	phraseNudge                   // said when both sides are silent
	phraseGoodbye                 // said before the agent hangs up
	phraseUnreached               // said after a transfer failed
	phraseStill                   // said when a tool takes long, after phraseFiller
	phraseLonger                  // said when a tool takes longer still, after phraseStill
	phraseOptedOut                // said after the callee opted out
	phraseCount
)

// preparedPhrases is the number of phrases, from the first constant on, that are synthesized when a call starts, so
// that they can be played when the voice fails.
const preparedPhrases = phraseNudge + 1

// In returns the text in a language (BCP 47), or "".
func (p phrase) In(language string) string {
	language, _, _ = strings.Cut(strings.ToLower(language), "-")
	texts := map[string][phraseCount]string{
		"": {
			"One moment, please.", "Sorry, I did not get that. Could you say it again?", "Are you still there?",
			"I have to go now. Goodbye.", "I am sorry, nobody there can take the call. Is there anything else I can do?",
			"I am still looking into it.", "This takes a little longer than usual. Thank you for waiting.",
			"You will not be called again. Goodbye.",
		},
		"de": {
			"Einen Moment, bitte.", "Entschuldigung, das habe ich nicht verstanden. Können Sie es wiederholen?", "Sind Sie noch da?",
			"Ich muss mich jetzt verabschieden. Auf Wiederhören.",
			"Es tut mir leid, dort ist niemand zu erreichen. Kann ich sonst etwas für Sie tun?",
			"Ich bin noch dabei.", "Es dauert etwas länger als sonst. Danke für Ihre Geduld.",
			"Sie werden nicht mehr angerufen. Auf Wiederhören.",
		},
		"es": {
			"Un momento, por favor.", "Perdone, no le he entendido. ¿Puede repetirlo?", "¿Sigue ahí?", //nolint:misspell // Spanish
			"Tengo que despedirme. Adiós.", "Lo siento, no hay nadie que pueda atenderle. ¿Puedo ayudarle en algo más?",
			"Sigo comprobándolo.", "Esto tarda un poco más de lo normal. Gracias por esperar.",
			"No volveremos a llamarle. Adiós.",
		},
		"fr": {
			"Un instant, s'il vous plaît.", "Pardon, je n'ai pas compris. Pouvez-vous répéter ?", "Vous êtes toujours là ?",
			"Je dois vous laisser. Au revoir.", "Je suis désolé, personne ne répond là-bas. Puis-je faire autre chose pour vous ?",
			"Je regarde encore.", "Cela prend un peu plus de temps que d'habitude. Merci de patienter.",
			"Nous ne vous appellerons plus. Au revoir.",
		},
		"kk": {
			"Бір сәт күтіңіз.", "Кешіріңіз, түсінбей қалдым. Қайталап жібересіз бе?", "Сіз әлі осындасыз ба?",
			"Енді қоштасуым керек. Сау болыңыз.", "Кешіріңіз, ол жақта ешкім жауап бермеді. Тағы қандай көмек керек?",
			"Әлі қарап жатырмын.", "Бұл әдеттегіден сәл ұзағырақ болып жатыр. Күткеніңізге рахмет.",
			"Сізге енді қоңырау шалынбайды. Сау болыңыз.",
		},
		"ru": {
			"Одну минуту, пожалуйста.", "Извините, я не расслышал. Повторите, пожалуйста.", "Вы ещё здесь?",
			"Мне пора прощаться. До свидания.", "Извините, там никто не отвечает. Могу ли я ещё чем-нибудь помочь?",
			"Я всё ещё проверяю.", "Это занимает чуть больше времени, чем обычно. Спасибо за ожидание.",
			"Вам больше не будут звонить. До свидания.",
		},
	}
	texts["en"] = texts[""]
	return texts[language][p]
}

// fillerPhrases returns the fillers of a language in the order in which they are spoken.
func fillerPhrases(language string) []string {
	var texts []string
	for _, l := range []phrase{phraseFiller, phraseStill, phraseLonger} {
		if text := l.In(language); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}
