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
		return []string{
			"Hello?",
			"Yes, hello.",
			"Miller speaking.",
			"Hi, this is Anna.",
			"Hello, Bob Carter here.",
			"Hi, it's Bob.",
			"Smith residence.",
		}
	case humanLong:
		return []string{
			"Good morning, Riverside Dental, this is Karen, how can I help you today?",
			"Thank you for calling Oak Street Garage, you are speaking with Tom.",
			"Hello, yes, I am just driving, but go on, I can hear you.",
			"Good morning, Smith and Sons, this is Anna, how can I help you?",
			"Good afternoon, you have reached the front desk of the Grand Hotel, this is Daniel, how may I help you?",
			"Hello, this is Sarah, I'm sorry, I can't hear you very well.",
			"Hi, it's Bob, I'm in a meeting right now, who is this?",
			"Hello, Anna's phone, she is in the kitchen, hold on, I'll get her.",
			"Hi, you're through to customer service, my name is Daniel, could I have your account number please?",
		}
	case machineBeep:
		return []string{
			"Hi, you have reached Peter Brown.|I can't come to the phone right now.|Please leave a message after the beep.",
			"The person you are calling is not available.|At the tone, please record your message.",
			"Hey, it's Mike.|You know what to do.|I'll get back to you.",
			"Hi, it's Bob, leave a message.",
			"Your call has been forwarded to an automated voice message system.|Peter Brown is not available.",
			"Hello, this is Sarah.|I'm not able to pick up, so please leave your name and number.",
			"The wireless customer you are calling has not set up a mailbox yet.|Please try again later.",
			"You've reached Dana.|Do your thing at the beep.",
			"Sorry I missed you.|Leave me a message.",
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
		return []string{
			"Schneider.",
			"Ja, hallo?",
			"Hallo, hier ist Jonas.",
		}
	case humanLong:
		return []string{
			"Guten Tag, Autohaus Weber, mein Name ist Lisa Koch, was kann ich für Sie tun?",
			"Praxis Doktor Klein, Sie sprechen mit Frau Vogel, guten Tag.",
			"Guten Tag, Sie haben die Zentrale der Firma Brandt erreicht, was kann ich für Sie tun?",
			"Hallo, hier ist der Jonas, ich bin gerade im Auto, wer ist denn da?",
		}
	case machineBeep:
		return []string{
			"Guten Tag, hier ist der Anschluss von Familie Bauer.|Wir sind gerade nicht zu Hause.|Bitte sprechen Sie nach dem Signalton.",
			"Der Teilnehmer ist zurzeit nicht erreichbar.|Bitte hinterlassen Sie eine Nachricht.",
			"Hi, hier ist Jonas, hinterlass mir eine Nachricht.",
			"Die gewählte Rufnummer ist im Moment nicht vergeben oder nicht erreichbar.",
			"Hallo, Sie haben die Mailbox von Jonas Weber erreicht.|Bitte sprechen Sie nach dem Ton.",
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
		return []string{
			"¿Dígame?",
			"Hola, ¿quién es?",
			"Sí, soy yo.",
		}
	case humanLong:
		return []string{
			"Buenos días, clínica San José, le atiende Carmen, ¿en qué puedo ayudarle?",
			"Talleres Romero, buenas tardes, soy Marta, dígame.",
			"Hola, soy Luis, ahora no le oigo bien, ¿quién llama?",
			"Buenas tardes, ha llamado a la recepción del hotel Miramar, ¿en qué puedo ayudarle?",
		}
	case machineBeep:
		return []string{
			"Hola, soy Luis.|Ahora no puedo atender su llamada.|Deje un mensaje después de la señal.",
			"El teléfono al que llama no está disponible.|Deje su mensaje.",
			"Hola, soy Marta, deja tu mensaje.",
			"Su llamada será transferida al buzón de voz.|Grabe su mensaje después del tono.",
			"Ha llamado a Luis Romero.|No estoy disponible.|Deje su nombre y su número.",
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
		return []string{
			"Allô?",
			"Oui, bonjour.",
			"Allô, c'est Julien.",
		}
	case humanLong:
		return []string{
			"Bonjour, cabinet du docteur Martin, Sophie à l'appareil, que puis-je faire pour vous?",
			"Garage Petit, bonjour, Julien à votre écoute.",
			"Bonjour, vous êtes bien au cabinet Martin, Sophie à votre service, que puis-je faire pour vous?",
			"Allô, oui, c'est Julien, je suis en voiture, je vous écoute.",
		}
	case machineBeep:
		return []string{
			"Bonjour, vous êtes bien chez Paul.|Je ne suis pas là pour le moment.|Laissez-moi un message après le bip.",
			"Vous êtes sur la messagerie de Claire.|Merci de parler après le signal sonore.",
			"Salut, c'est Julien, laisse un message.",
			"Le numéro que vous demandez n'est pas joignable.|Veuillez rappeler ultérieurement.",
			"Bonjour, vous êtes bien sur le répondeur de Julien Petit.|Laissez vos coordonnées.",
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
		return []string{
			"Алло.",
			"Да, слушаю.",
			"Алло, это Саша.",
		}
	case humanLong:
		return []string{
			"Добрый день, стоматология на Садовой, администратор Ольга, чем могу помочь?",
			"Добрый день, компания Вектор, меня зовут Андрей, слушаю вас.",
			"Здравствуйте, вы позвонили в клинику Здоровье, меня зовут Анна, чем могу помочь?",
			"Алло, да, я сейчас за рулём, но говорите.",
		}
	case machineBeep:
		return []string{
			"Здравствуйте, вы позвонили Ивану.|Я сейчас не могу говорить.|Оставьте сообщение после сигнала.",
			"Абонент сейчас недоступен.|Оставьте сообщение после звукового сигнала.",
			"Привет, это Саша, оставьте сообщение.",
			"Аппарат абонента выключен или находится вне зоны действия сети.",
			"Здравствуйте, вас приветствует автоответчик.|Говорите после гудка.",
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
		return []string{
			"Алло.",
			"Иә, тыңдап тұрмын.",
			"Алло, бұл Асқар.",
		}
	case humanLong:
		return []string{
			"Қайырлы күн, Алатау емханасы, менің атым Айгүл, сізге қалай көмектесе аламын?",
			"Сәлеметсіз бе, Алматы дүкені, Дана тыңдап тұр, қалай көмектесейін?",
			"Алло, иә, бұл Асқар, қазір көлікте едім, айта беріңіз.",
			"Алло, бұл Асқардың телефоны, мен оның інісімін, күте тұрыңыз.",
		}
	case machineBeep:
		return []string{
			"Сәлеметсіз бе, бұл Асқардың телефоны.|Қазір жауап бере алмаймын.|Сигналдан кейін хабарлама қалдырыңыз.",
			"Сәлем, бұл Дана, хабарлама қалдырыңыз.",
			"Сіз қоңырау шалған абонент қазір қолжетімсіз.|Кейінірек қайта қоңырау шалыңыз.",
		}
	case menu:
		return []string{"Банкке қош келдіңіз.|Оператормен сөйлесу үшін бірді басыңыз."}
	default:
		return []string{"Қоңырауыңыз тексеріледі.|Атыңызды айтыңыз."}
	}
}
