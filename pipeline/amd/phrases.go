package amd

import "strings"

// matchPhrase returns the party whose phrase occurs in text, and the phrase. It tests screening assistants first,
// because they ask for a name as a machine asks for a message.
func matchPhrase(text string) (Party, string) {
	text = normalize(text)
	for _, p := range []Party{Screening, IVR, Voicemail} {
		if phrase := findPhrase(text, phrases(p)); phrase != "" {
			return p, phrase
		}
	}
	return Unknown, ""
}

// matchHint returns a phrase in text with which machines begin, but people rarely do; "" if there is none.
func matchHint(text string) string {
	return findPhrase(
		normalize(text),
		"you have reached|you've reached|you reached|the person you are|the person you're|the person you have|the person you called|the party you|the customer you|the subscriber you|your call has been forwarded|"+
			"hier ist der anschluss|sie haben den anschluss|der teilnehmer|der gewünschte|der angerufene|die gewünschte|die angerufene|"+
			"el teléfono al que|el número al que|el cliente al que|la persona a la que|el abonado|el móvil al que|"+
			"vous êtes bien chez|vous êtes bien sur|vous êtes bien au|vous êtes sur|votre correspondant|le correspondant|la personne que vous|le numéro que vous|"+ //nolint:misspell // French
			"вы позвонили|вы дозвонились|абонент|аппарат абонента|телефон абонента|абоненттің|сіз қоңырау шалған",
	)
}

// normalize returns text in lower case with words separated by single spaces.
func normalize(text string) string {
	return " " + strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return strings.ContainsRune(" \t\n.,;:!?¿¡…\"«»-", r)
	}), " ") + " "
}

func findPhrase(text, phrases string) string {
	for phrase := range strings.SplitSeq(phrases, "|") {
		if phrase != "" && strings.Contains(text, " "+phrase+" ") {
			return phrase
		}
	}
	return ""
}

// phrases returns the phrases of a party in English, German, Spanish, French, Russian and
// Kazakh, separated by bars.
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
		return "leave a message|leave me a message|leave us a message|leave your|leave me your|leave us your|leave a brief|leave a short|leave a detailed|leave a voice|" +
			"message after the|after the beep|after the tone|at the tone|at the beep|hear the beep|wait for the beep|record your message|voicemail|voice mail|voice message|answering machine|mailbox|" +
			"not available|unavailable|come to the phone|get to the phone|make it to the phone|get to my phone|away from my phone|away from my desk|i'm out of the office|am out of the office|be out of the office|i'm not here|i am not here|we're not here|we are not here|i'm not home|we're not home|" +
			"can't take your call|cannot take your call|unable to take your call|unable to answer|can't answer your call|can't answer the phone|take your call right now|" +
			"get back to you|i'll return your call|will return your call|can return your call|call you back as soon|you know what to do|" +
			"nachricht hinterlassen|hinterlassen sie|hinterlasst|hinterlass|nach dem signalton|nach dem ton|nach dem piepton|nach dem piep|nach dem signal|nach dem pfeifton|mailbox von|auf die mailbox|" +
			"nicht erreichbar|nicht zu erreichen|nicht ans telefon|anrufbeantworter|aufs band|auf band|anruf nicht entgegennehmen|anruf leider nicht|anruf momentan nicht|anruf gerade nicht|" +
			"gerade nicht zu hause|zurzeit nicht zu hause|leider nicht zu hause|momentan nicht zu hause|" +
			"deje un mensaje|deje su mensaje|deja un mensaje|deja tu mensaje|dejar un mensaje|dejar su mensaje|dejar tu mensaje|déjame un mensaje|déjame tu mensaje|deje su nombre|deja tu nombre|" +
			"después de la señal|después del tono|después del bip|después del pitido|después de oír|tras la señal|tras el tono|tras el pitido|al oír la señal|buzón de voz|buzón|contestador|" +
			"no puedo atender|no podemos atender|no te puedo atender|no le puedo atender|no puedo contestar|no podemos contestar|no puedo responder|no está disponible|se encuentra disponible|no estoy disponible|" +
			"no estoy en casa|no estamos en casa|no me encuentro|apagado o fuera|fuera de cobertura|" +
			"laissez un message|laissez moi un message|laissez nous un message|laisser un message|laisse un message|laisse moi un message|laissez votre|laissez moi votre|laissez vos|laisser votre|laisse ton|" +
			"après le bip|après le signal|après la tonalité|au bip|bip sonore|signal sonore|messagerie|boîte vocale|répondeur|pas disponible|pas joignable|je ne suis pas là|nous ne sommes pas là|" +
			"ne peux pas vous répondre|ne peut pas vous répondre|ne pouvons pas vous répondre|ne peux pas répondre|ne peux vous répondre|ne pouvons répondre|actuellement absent|actuellement absente|" +
			"оставьте сообщение|оставьте ваше|оставьте своё|оставьте свое|оставить сообщение|оставить своё|оставить свое|оставить голосовое|после сигнала|после звукового сигнала|после гудка|после короткого|после длинного|после тонального|" +
			"автоответчик|голосовая почта|голосовой почты|голосовой ящик|не может ответить|не могу ответить|не можем ответить|не могу подойти|не можем подойти|нас нет дома|меня нет дома|недоступен|временно недоступен|вне зоны|выключен или|" +
			"хабарлама қалдырыңыз|хабарламаңызды қалдырыңыз|хабарлама қалдыр|хабарлама қалдыруыңызға|сигналдан кейін|сигналдан соң|дыбыстық сигналдан|дыбыстан кейін|белгіден кейін|" +
			"жауап бере алмайды|жауап бере алмаймын|жауап бере алмаймыз|телефонға жауап бере|автожауап|өшірулі|байланыс аясынан тыс|желіден тыс"
	default:
		return ""
	}
}
