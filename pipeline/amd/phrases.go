package amd

import "strings"

// read tells who says what no other says. Screening is looked for first: it
// asks to leave a name, as a machine asks for a message.
func read(text string) (Party, string) {
	text = plain(text)
	for _, p := range []Party{Screening, IVR, Voicemail} {
		if phrase := find(text, phrases(p)); phrase != "" {
			return p, phrase
		}
	}
	return Unknown, ""
}

// hints returns a phrase that a machine begins with, and hardly a person.
func hints(text string) string {
	return find(plain(text), "you have reached|you've reached|the person you are calling|hier ist der anschluss|der teilnehmer|el teléfono al que llama|"+
		"vous êtes bien chez|vous êtes sur|вы позвонили|абонент")
}

// plain returns text in lower case, its words parted by single spaces.
func plain(text string) string {
	return " " + strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return strings.ContainsRune(" \t\n.,;:!?¿¡…\"«»-", r)
	}), " ") + " "
}

func find(text, phrases string) string {
	for phrase := range strings.SplitSeq(phrases, "|") {
		if phrase != "" && strings.Contains(text, " "+phrase+" ") {
			return phrase
		}
	}
	return ""
}

// phrases are the phrases of a party in English, German, Spanish, French,
// Russian and Kazakh, parted by bars.
func phrases(p Party) string {
	switch p {
	case Screening:
		return "state your name|say your name|who is calling and why|reason for your call|why you are calling|why you're calling|screening service|screen this call|" +
			"sagen sie ihren namen|nennen sie ihren namen|grund ihres anrufs|diga su nombre|motivo de su llamada|dites votre nom|indiquez votre nom|raison de votre appel|" +
			"назовите ваше имя|назовите своё имя|цель вашего звонка|цель звонка|атыңызды айтыңыз|қоңырау себебін"
	case IVR:
		return "press one|press two|press 1|press 2|press zero|press 0|for sales|main menu|your call is important|calls may be recorded|call may be recorded|para español|following options|office hours|business hours|" +
			"drücken sie|ihr anruf ist uns wichtig|folgenden optionen|pulse uno|pulse dos|pulse el|marque uno|marque el|su llamada es importante|" +
			"tapez un|tapez 1|appuyez sur|votre appel est important|нажмите один|нажмите 1|нажмите два|ваш звонок очень важен|ваш звонок важен|" +
			"бірді басыңыз|1 басыңыз|екіні басыңыз|қоңырауыңыз біз үшін маңызды"
	case Voicemail:
		return "leave a message|leave me a message|leave your message|leave your name|after the beep|after the tone|at the tone|record your message|voicemail|voice mail|mailbox|" +
			"not available|unavailable|can't come to the phone|cannot come to the phone|can't take your call|cannot take your call|unable to take your call|unable to answer|get back to you|call you back as soon|" +
			"nachricht hinterlassen|hinterlassen sie|nach dem signalton|nach dem ton|nach dem piepton|mailbox von|nicht erreichbar|anrufbeantworter|" +
			"deje un mensaje|deje su mensaje|después de la señal|después del tono|buzón de voz|no puedo atender|no está disponible|" +
			"laissez un message|laissez moi un message|laisser un message|après le bip|après le signal|messagerie|boîte vocale|pas disponible|" +
			"оставьте сообщение|после сигнала|после звукового сигнала|автоответчик|голосовая почта|голосовой почты|не может ответить|недоступен|" +
			"хабарлама қалдырыңыз|сигналдан кейін|дыбыстық сигналдан|жауап бере алмайды|автожауап"
	default:
		return ""
	}
}
