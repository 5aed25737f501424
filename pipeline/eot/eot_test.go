package eot

import (
	"math"
	"strings"
	"testing"
)

// labelled returns finished and unfinished phrases, separated by bars, for each language and question. They are
// transcripts without punctuation.
func labelled() []struct{ language, asked, finished, unfinished string } {
	return []struct{ language, asked, finished, unfinished string }{
		{
			"en", "", "i would like to book a table|i want to cancel my order please|that sounds good to me|i live in boston|we moved last week|can you call me back tomorrow|" +
				"thanks|no thank you|what time do you open|i have a question about my bill please|she paid it on monday|my name is john smith|goodbye|yes that works|it arrived yesterday|okay|see you on friday then",
			"i would like to|i want to cancel my|well|um|so i was thinking that|because the|i live in|we moved to the|can you call me back and|if you could|my name is|" +
				"it depends on|the problem is that|i was going to say um|yes but|i have a|could you tell me when|it was very|between nine and|not only",
		},
		{"en", "Do you still want the appointment?", "yes|no|yeah sure|yes please|not really|yes i do|no i moved it", "yes but|no because|yes and i also want to|um|well"},
		{"en", "How can I help you today?", "i lost my card yesterday|my internet stopped working this morning", "i lost my|my internet stopped working and|well my"},
		{"en", "Would you prefer Tuesday or Wednesday?", "tuesday|wednesday afternoon|the second one", "tuesday or|on|maybe the"},
		{"en", "What is your phone number?", "two one two five five five zero one nine nine|2125550199|it is 212 555 0199", "two one two|2 1 2 5 5|it's 212|my number is|212 555"},
		{"en", "Could you spell your e-mail address?", "john at example dot com|john.smith@example.org|mary at mail dot net", "j o h n|john at|john at example dot|john.smith@|m a"},
		{"en", "Can you tell me the last four digits?", "five five one two|0199", "five five|01"},
		{
			"de", "", "ich möchte einen termin am montag vereinbaren|das passt mir gut|vielen dank|ich wohne jetzt in hamburg|können sie mich morgen zurückrufen|das ist alles|nein danke|er hat gestern schon bezahlt|auf wiederhören",
			"ich möchte|ich wohne in der|und dann|weil ich|das ist ein|äh|also|wenn sie mir|ich habe eine|zwischen neun und|ich wollte fragen ob",
		},
		{"de", "Passt Ihnen Dienstag?", "ja|nein|ja gern|ja das passt", "ja aber|nein weil|ähm"},
		{"de", "Wie ist Ihre Telefonnummer?", "null eins sieben eins drei drei vier fünf sechs sieben|01713345678", "null eins sieben eins|0171"},
		{
			"es", "", "quería cambiar la fecha de mi cita|muchas gracias|me llamo ana garcía|vivo en barcelona desde marzo|no gracias|eso es todo|pagué la factura ayer|dígame",
			"quería cambiar la|me llamo ana y|vivo en|porque mi|pues|eh|necesito|si usted|es que no tengo el|entre las nueve y",
		},
		{"es", "¿Le viene bien el martes?", "sí|no|sí claro|no gracias", "sí pero|no porque|este"},
		{"es", "¿Cuál es su número de teléfono?", "seis uno dos tres cuatro cinco seis siete ocho nueve|+34612345678", "seis uno dos|612 34"},
		{
			"fr", "", "je voudrais changer la date du rendez-vous|merci beaucoup|j'habite à lyon maintenant|non merci|c'est tout|il a payé la facture hier|au revoir|s'il vous plaît",
			"je voudrais|je voudrais changer la|parce que|j'habite à|euh|et puis on|si vous|c'est pour mon|entre neuf heures et|alors",
		},
		{"fr", "Est-ce que mardi vous convient?", "oui|non|oui merci|non merci", "oui mais|non parce que|euh"},
		{"fr", "Quel est votre numéro de téléphone?", "zéro six un deux trois quatre cinq six sept huit|0612345678", "zéro six un deux|06 12"},
		{
			"ru", "", "я хочу перенести запись на четверг|спасибо|мне это подходит|он уже заплатил вчера|до свидания|перезвоните мне завтра пожалуйста|мы живём в казани|больше ничего|слушаю вас",
			"я хочу|перенести запись на|потому что|мне нужно|ну|э|если вы|это мой|мы живём в|между девятью и|я хотел бы чтобы",
		},
		{"ru", "Вам удобно во вторник?", "да|нет|да конечно|нет спасибо", "да но|нет потому что|ну"},
		{"ru", "Назовите ваш номер телефона.", "восемь девять один два три четыре пять шесть семь восемь девять|89123456789", "восемь девять один два|8912"},
		{"kk", "", "маған ертең қоңырау шалыңыз|рахмет|мен алматыда тұрамын|ақшаны кеше төледім|сау болыңыз|болды|маған кеңес керек", "менің|мен ертең және|бірақ|сондықтан|ээ|досымның|мына"},
		{"kk", "Сейсенбі сізге ыңғайлы ма?", "иә|жоқ|иә әрине|жоқ рахмет", "иә бірақ|жоқ өйткені|жаңағы"},
		{"en", "", "I see.|Is it?|I will call you back.", "First,|I think…|and then -|Well,"},
	}
}

// TestGuess checks that finished phrases have a probability of at least 0.6 and unfinished
// ones less.
func TestGuess(t *testing.T) {
	n, wrong := 0, 0
	for _, c := range labelled() {
		for i, phrases := range []string{c.finished, c.unfinished} {
			for text := range strings.SplitSeq(phrases, "|") {
				n++
				g := Pause{Text: text, Asked: c.asked, Language: c.language}.Guess()
				if g.Reason == "" || (g.P >= 0.6) != (i == 0) {
					wrong++
					t.Errorf("%s %q after %q: %+v, finished: %v", c.language, text, c.asked, g, i == 0)
				}
			}
		}
	}
	if n < 120 {
		t.Errorf("%d phrases", n)
	}
	t.Logf("%d of %d are wrong", wrong, n)
}

func TestReasons(t *testing.T) {
	const open, decide = "How can I help you?", "Is Tuesday okay?"
	for _, c := range []struct {
		asked, text, reason string
		least, most         float64
		dictation           bool
	}{
		{"", "", "no_words", 0, 0, false},
		{"", " ... ", "no_words", 0, 0, false},
		{"", "I see.", "sentence_ended", 0.95, 1, false},
		{"", "first, ", "trails_off", 0, 0.29, false},
		{"", "i think um", "filler", 0, 0.29, false},
		{"", "i think that", "unfinished", 0, 0.29, false},
		{decide, "yes", "answered", 0.9, 1, false},
		{decide, "yes it is", "answered", 0.9, 1, false},
		{"", "if you would", "unfinished", 0, 0.29, false},
		{open, "my car broke down", "clause_complete", 0.6, 0.75, false},
		{"", "my car broke down near the bridge", "clause_complete", 0.75, 0.9, false},
		{open, "billing", "short_answer", 0.6, 0.7, false},
		{"", "send it to me please", "closed", 0.9, 1, false},
		{"", "one two three", "number_open", 0, 0.29, true},
		{"", "it's mary at example dot com", "address_complete", 0.8, 1, true},
		{"What is your e-mail?", "mary at", "address_open", 0, 0.29, true},
		{"Please spell your name.", "s m i", "spelling", 0, 0.29, true},
		{"What is your number?", "2125550199", "number_complete", 0.6, 0.9, true},
	} {
		g := Pause{Asked: c.asked, Text: c.text}.Guess()
		if g.Reason != c.reason || g.P < c.least || g.P > c.most || g.Dictation != c.dictation {
			t.Errorf("%q after %q: %+v, want %s in %v to %v", c.text, c.asked, g, c.reason, c.least, c.most)
		}
	}
}

func TestExpect(t *testing.T) {
	for _, c := range []struct {
		language, asked string
		want            Expectation
	}{
		{"en", "", Anything},
		{"en", "Hello, this is Parley.", Anything},
		{"en", "Hello. Is this a good time?", YesNo},
		{"en", "Great, does Tuesday work for you?", YesNo},
		{"en", "Is Tuesday or Friday better?", Choice},
		{"en", "How can I help you today?", OpenQuestion},
		{"en", "Could you tell me why you are calling?", OpenQuestion},
		{"en", "What is your phone number?", Dictation},
		{"en", "Can you spell your last name?", Dictation},
		{"en", "Is this number still correct?", YesNo},
		{"de", "Passt Ihnen der Dienstag?", YesNo},
		{"de", "Wie kann ich Ihnen helfen?", OpenQuestion},
		{"de", "Dienstag oder Mittwoch?", Choice},
		{"de", "Wie lautet Ihre Postleitzahl?", Dictation},
		{"es", "¿Le viene bien?", YesNo},
		{"es", "¿Cómo puedo ayudarle?", OpenQuestion},
		{"fr", "Est-ce que cela vous convient?", YesNo},
		{"fr", "Comment puis-je vous aider?", OpenQuestion},
		{"ru", "Вам удобно?", YesNo},
		{"ru", "Чем могу помочь? Какой у вас вопрос?", OpenQuestion},
		{"ru", "Назовите ваш номер.", Dictation},
		{"kk", "Сізге ыңғайлы ма?", YesNo},
		{"kk", "Қалай көмектесе аламын?", OpenQuestion},
		{"sw", "Je, unaitwa nani?", YesNo},
	} {
		if got := Expect(c.asked, c.language); got != c.want {
			t.Errorf("%s %q: %d, want %d", c.language, c.asked, got, c.want)
		}
	}
}

// TestProsody checks that falling pitch raises and rising pitch lowers the probability,
// within bounds, and that unknown prosody has no effect.
func TestProsody(t *testing.T) {
	p := func(s Prosody) float64 { return Pause{Text: "we moved to madrid", Prosody: s}.Guess().P }
	flat := p(Prosody{})
	if p(Prosody{Fall: 9, Trail: 9}) != flat {
		t.Error("unknown prosody has an effect")
	}
	fall, rise := p(Prosody{Fall: 5, Trail: 8, Known: true}), p(Prosody{Fall: -4, Trail: 0, Known: true})
	if !(rise < flat-0.1 && fall > flat+0.05) {
		t.Errorf("rising %v, unknown %v, falling %v", rise, flat, fall)
	}
	if a, b := p(Prosody{Fall: 1e9, Trail: 1e9, Known: true}), p(Prosody{Fall: 6, Trail: 12, Known: true}); a != b || a >= 0.9 {
		t.Errorf("bound %v, %v", a, b)
	}
}

func FuzzGuess(f *testing.F) {
	f.Add("i want to", "Is it?", "en", 1.0, 2.0)
	f.Add("john at example dot com", "What is your e-mail?", "de-DE", -1.0, 0.0)
	f.Add("иә", "Ыңғайлы ма?", "kk", math.NaN(), math.Inf(1))
	f.Fuzz(func(t *testing.T, text, asked, language string, fall, trail float64) {
		g := Pause{Text: text, Asked: asked, Language: language, Prosody: Prosody{Fall: fall, Trail: trail, Known: true}}.Guess()
		if !(g.P >= 0 && g.P <= 1) || g.Reason == "" {
			t.Fatalf("%+v", g)
		}
	})
}
