package amd

import "strings"

// Confidence in words.
const (
	certain  = 0.95 // only machines say it
	person   = 0.9  // people say it, and virtual assistants
	likely   = 0.85 // machines begin with it, but people rarely do
	possible = 0.75 // the first words of a machine, or words that receptions say too
)

// matchText returns the party that says text, and the phrase that shows it. waited means that the party has already
// been silent for as long as a person who waits for an answer. No greeting begins after that, so phrases that are
// evidence only at the beginning of a greeting are ignored.
func matchText(text string, waited bool) (p Party, confidence float64, phrase string) {
	text = normalize(text)
	for _, p := range []Party{Screening, IVR, Voicemail} { // Screening first: it asks for a name, as a machine that takes a message also does
		if phrase = findPhrase(text, phrases(p)); phrase != "" {
			return p, certain, phrase
		}
	}
	if phrase = findPhrase(text, phrases(Human)); phrase != "" {
		return Human, person, phrase
	}
	if strings.HasPrefix(text, " hi the person ") { // a carrier's announcement does not say hi
		return Screening, possible, "hi the person"
	}
	greeting := cutSalutation(text)
	phrase = findPhrase(text, hints())
	if phrase == "" {
		phrase, _ = cutPhrase(greeting, beginnings())
	}
	reached := findPhrase(text, reachedPhrases())
	switch {
	case phrase != "":
		return Voicemail, likely, phrase
	case reached != "" && (waited || !isReception(text)):
		return Voicemail, likely, reached
	case reached != "":
		return Voicemail, possible, reached
	default:
		return matchGreeting(greeting, waited)
	}
}

// matchGreeting is matchText for the words that are evidence only at the beginning of a greeting.
func matchGreeting(greeting string, waited bool) (p Party, confidence float64, phrase string) {
	named, said := cutPhrase(greeting, names())
	if request := findPhrase(said, requests()); named != "" && request != "" {
		if waited {
			return Voicemail, likely, named + " … " + request
		}
		return Voicemail, possible, named + " … " + request
	}
	if waited {
		return Unknown, 0, ""
	}
	if excuse := findPhrase(said, excuses()); named != "" && excuse != "" {
		return Voicemail, possible, named + " … " + excuse
	}
	if opening, _ := cutPhrase(greeting, openings()); opening != "" {
		return Voicemail, possible, opening
	}
	return Unknown, 0, ""
}

// cutSalutation returns text, which is normalized, without the greetings at its beginning. The words with which only
// people answer a phone ("алло") do not count as greetings.
func cutSalutation(text string) string {
	for range 3 { // such as "hello hi good morning"
		salutation, rest := cutPhrase(text, "hi|hello|hey|good morning|good afternoon|good evening|thank you for calling|thanks for calling|"+
			"hallo|moin|guten tag|guten morgen|guten abend|grüß gott|hola|buenos días|buenas tardes|buenas noches|bonjour|bonsoir|salut|"+
			"здравствуйте|добрый день|доброе утро|добрый вечер|привет|сәлеметсіз бе|сәлем|қайырлы күн")
		if salutation == "" {
			break
		}
		text = rest
	}
	return text
}

// cutPhrase returns the phrase with which text begins, "" if none, and the rest of text.
func cutPhrase(text, phrases string) (phrase, rest string) {
	for phrase := range strings.SplitSeq(phrases, "|") {
		if n := len(phrase) + 1; strings.HasPrefix(text, " "+phrase+" ") {
			return phrase, text[n:]
		}
	}
	return "", text
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
	case Human:
		return "how can i help|how may i help|how can we help|how may we help|how can i assist|how may i assist|how can we assist|how may we assist|what can i do for you|how may i direct|" +
			"who's calling|who's this|who is this|who am i speaking|" +
			"was kann ich für sie|wie kann ich ihnen|wie darf ich ihnen|wer ist da|wer ist denn da|wer spricht|" +
			"en qué puedo|en qué le puedo|cómo puedo ayudar|quién es|quién llama|quién habla|" +
			"que puis je faire|en quoi puis je|comment puis je|qui est à l'appareil|je vous écoute|" +
			"чем могу помочь|чем могу быть|чем я могу|слушаю вас|вас слушаю|кто это|кто говорит|" +
			"қалай көмектесе|қалай көмектесейін|тыңдап тұрмын|сізді тыңдап|бұл кім"
	default:
		return ""
	}
}

// hints returns phrases with which machines begin, but people rarely do.
func hints() string {
	return "the person you are|the person you're|the person you have|the person you called|the customer you|the subscriber you|the wireless customer|" +
		"your call has been|your call is being|your call cannot|" +
		"hier ist der anschluss|sie haben den anschluss|der teilnehmer|der gewünschte|der angerufene|die gewünschte|die angerufene|die gewählte|ich bin nicht da|bin ich nicht da|" +
		"el teléfono al que|el número al que|el cliente al que|la persona a la que|el abonado|el móvil al que|su llamada será|su llamada ha sido|" +
		"votre correspondant|le correspondant|la personne que vous|le numéro que vous|votre appel est|votre appel va|" + //nolint:misspell // French
		"абонент|аппарат абонента|телефон абонента|абоненттің|сіз қоңырау шалған"
}

// beginnings returns phrases that are hints at the beginning of a greeting, after a salutation, and nowhere else.
func beginnings() string {
	return "the person you|the party you|the number you are|the number you called|the number you dialed|the number you have dialed|the number you have called|" +
		"your call has|el teléfono al|el número al|el número que|el cliente al|la persona a la|el móvil al"
}

// reachedPhrases returns phrases that name the called party. Machines begin with them, and sometimes receptions.
func reachedPhrases() string {
	return "you have reached|you've reached|you reached|" +
		"vous êtes bien chez|vous êtes bien sur|vous êtes bien au|vous êtes sur|" +
		"вы позвонили|вы дозвонились"
}

// isReception reports whether text, which has one of reachedPhrases, may be a reception's: a formal greeting, or the
// name of an organization.
func isReception(text string) bool {
	formal, _ := cutPhrase(text, "good morning|good afternoon|good evening|thank you for calling|thanks for calling")
	return formal != "" || findPhrase(text, "vous êtes bien au|вы позвонили в|вы дозвонились до") != "" ||
		strings.HasSuffix(text, " вы позвонили ") || strings.HasSuffix(text, " вы дозвонились ")
}

// openings returns the first words of machines' greetings, without a salutation. A person who answers rarely begins
// by speaking of the caller.
func openings() string {
	return "the person|the party|the customer|the subscriber|the number|the wireless|your call|you|please leave|no one is|sorry i missed|" +
		"diese rufnummer|die rufnummer|die mailbox|sie sind verbunden|sie sprechen mit dem|sie rufen|ihr anruf|sie haben|hier ist die mailbox|" +
		"el teléfono|el número|el cliente|la persona|el móvil|su llamada|usted ha|ha llamado|" +
		"vous|le numéro|la personne|votre appel|" +
		"аппарат|телефон на|телефон который|номер на|номер который|вы|вас приветствует|сіз"
}

// names returns the words with which a party says its name.
func names() string {
	return "it's|it is|this is|i'm|hier ist|hier spricht|soy|habla|c'est|ici|это|бұл"
}

// excuses returns what machines, and sometimes people, say after their name.
func excuses() string {
	return "i'm not|i am not|i can't|i'm out|i'm away|i'm currently|i'll be|i will be|our office|our offices|" +
		"bin gerade|bin zurzeit|kann gerade nicht|ahora no puedo|en este momento no|je ne|я сейчас не|қазір|телефоны" //nolint:misspell // Spanish
}

// requests returns what machines, but not people, say after their name.
func requests() string {
	return "leave a|leave your|please leave|just leave|you know what|not able to pick|not able to take|not able to answer|not able to come|not able to get|" +
		"unable to|can't come to|can't get to|can't pick up|can't answer|sorry i missed|" +
		"sprich mir|sprecht mir|sprich nach|sprecht nach|deja un|deja tu|deje un|deje su|déjame un|déjame tu|laisse un|laisse ton|laisse moi un|laissez un|" +
		"оставь сообщение|хабарлама"
}
