package amd

// A class is a kind of person or machine that answers a call.
type class int

const (
	humanShort class = iota
	humanLong
	machineBeep
	machineMute // an answering machine without a beep
	menu
	screening
	fax
)

func classes() []class {
	return []class{humanShort, humanLong, machineBeep, machineMute, menu, screening, fax}
}

func (c class) human() bool { return c <= humanLong }

func (c class) String() string {
	switch c {
	case humanShort:
		return "human, short"
	case humanLong:
		return "human, long"
	case machineBeep:
		return "machine + beep"
	case machineMute:
		return "machine, no beep"
	case menu:
		return "menu"
	case screening:
		return "call screening"
	default:
		return "fax"
	}
}

// scripts returns the texts of a class in a language; bars separate sentences.
func scripts(c class, language string) []string {
	if c == fax {
		return []string{"", ""}
	}
	if c == machineMute {
		c = machineBeep
	}
	switch language {
	case "de":
		return german(c)
	case "es":
		return spanish(c)
	case "fr":
		return french(c)
	case "ru":
		return russian(c)
	case "kk":
		return kazakh(c)
	default:
		return english(c)
	}
}

func english(c class) []string {
	switch c {
	case humanShort:
		return []string{"Hello?", "Yes, hello.", "Miller speaking.", "Hi, this is Anna."}
	case humanLong:
		return []string{
			"Good morning, Riverside Dental, this is Karen, how can I help you today?",
			"Thank you for calling Oak Street Garage, you are speaking with Tom.",
			"Hello, yes, I am just driving, but go on, I can hear you.",
		}
	case machineBeep:
		return []string{
			"Hi, you have reached Peter Brown.|I can't come to the phone right now.|Please leave a message after the beep.",
			"The person you are calling is not available.|At the tone, please record your message.",
			"Hey, it's Mike.|You know what to do.|I'll get back to you.",
		}
	case menu:
		return []string{
			"Welcome to Northern Bank.|For sales, press one.|For support, press two.",
			"Thank you for calling.|Your call is important to us.|Please listen to the following options.",
		}
	default:
		return []string{
			"Hi, the person you are calling is using a screening service.|Please state your name, and why you are calling.",
			"Before I try to connect you,|can I ask what the reason for your call is?",
		}
	}
}

func german(c class) []string {
	switch c {
	case humanShort:
		return []string{"Schneider.", "Ja, hallo?"}
	case humanLong:
		return []string{"Guten Tag, Autohaus Weber, mein Name ist Lisa Koch, was kann ich für Sie tun?"}
	case machineBeep:
		return []string{
			"Guten Tag, hier ist der Anschluss von Familie Bauer.|Wir sind gerade nicht zu Hause.|Bitte sprechen Sie nach dem Signalton.",
			"Der Teilnehmer ist zurzeit nicht erreichbar.|Bitte hinterlassen Sie eine Nachricht.",
		}
	case menu:
		return []string{"Willkommen bei der Stadtbank.|Für Fragen zum Konto drücken Sie die Eins."}
	default:
		return []string{"Dieser Anruf wird geprüft.|Bitte nennen Sie Ihren Namen und den Grund Ihres Anrufs."}
	}
}

func spanish(c class) []string {
	switch c {
	case humanShort:
		return []string{"¿Dígame?", "Hola, ¿quién es?"}
	case humanLong:
		return []string{"Buenos días, clínica San José, le atiende Carmen, ¿en qué puedo ayudarle?"}
	case machineBeep:
		return []string{
			"Hola, soy Luis.|Ahora no puedo atender su llamada.|Deje un mensaje después de la señal.",
			"El teléfono al que llama no está disponible.|Deje su mensaje.",
		}
	case menu:
		return []string{"Bienvenido al Banco del Sur.|Para ventas, pulse uno.|Para otras consultas, pulse dos."}
	default:
		return []string{"Antes de pasar la llamada,|diga su nombre y el motivo de su llamada."}
	}
}

func french(c class) []string {
	switch c {
	case humanShort:
		return []string{"Allô?", "Oui, bonjour."}
	case humanLong:
		return []string{"Bonjour, cabinet du docteur Martin, Sophie à l'appareil, que puis-je faire pour vous?"}
	case machineBeep:
		return []string{
			"Bonjour, vous êtes bien chez Paul.|Je ne suis pas là pour le moment.|Laissez-moi un message après le bip.",
			"Vous êtes sur la messagerie de Claire.|Merci de parler après le signal sonore.",
		}
	case menu:
		return []string{"Bienvenue à la Banque du Nord.|Pour le service client, tapez un."}
	default:
		return []string{"Votre appel est filtré.|Dites votre nom et la raison de votre appel."}
	}
}

func russian(c class) []string {
	switch c {
	case humanShort:
		return []string{"Алло.", "Да, слушаю."}
	case humanLong:
		return []string{"Добрый день, стоматология на Садовой, администратор Ольга, чем могу помочь?"}
	case machineBeep:
		return []string{
			"Здравствуйте, вы позвонили Ивану.|Я сейчас не могу говорить.|Оставьте сообщение после сигнала.",
			"Абонент сейчас недоступен.|Оставьте сообщение после звукового сигнала.",
		}
	case menu:
		return []string{"Добро пожаловать в банк.|Ваш звонок очень важен для нас.|Для связи с оператором нажмите один."}
	default:
		return []string{"Вам отвечает помощник.|Назовите ваше имя и цель вашего звонка."}
	}
}

func kazakh(c class) []string {
	switch c {
	case humanShort:
		return []string{"Алло.", "Иә, тыңдап тұрмын."}
	case humanLong:
		return []string{"Қайырлы күн, Алатау емханасы, менің атым Айгүл, сізге қалай көмектесе аламын?"}
	case machineBeep:
		return []string{"Сәлеметсіз бе, бұл Асқардың телефоны.|Қазір жауап бере алмаймын.|Сигналдан кейін хабарлама қалдырыңыз."}
	case menu:
		return []string{"Банкке қош келдіңіз.|Оператормен сөйлесу үшін бірді басыңыз."}
	default:
		return []string{"Қоңырауыңыз тексеріледі.|Атыңызды айтыңыз."}
	}
}
