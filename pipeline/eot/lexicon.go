package eot

// A lexicon holds the end-of-turn cues of a language: space-separated words or
// bar-separated phrases, in lower case.
type lexicon struct {
	open      string // words with which a sentence does not end
	fillers   string // hesitation sounds
	pointers  string // words of open that may end a sentence after a word of governs
	governs   string
	particles string // words of open that may end a sentence after a word of moves
	moves     string
	compares  string // words after which a subject and a word of open may end a sentence
	openers   string // words that are fillers when they stand alone
	closers   string // phrases that close a turn
	yes       string // answers to a yes-or-no question, affirmative or negative
	subjects  string // pronouns that are subjects
	digits    string // number words
	spelling  string // words within addresses and spelled names
	domains   string // top-level domains
	asking    string // words that ask for more than yes or no
	deciding  string // words that begin a yes-or-no question
	numbers   string // words for dictated data in questions, such as "number"
	confirms  string // words that ask the caller to confirm dictated data
	or        string // word that separates options
	hinges    string // words that open a subordinate clause
	endings   string // endings of finite verbs, in languages that place them at the end of a sentence
	hanging   string // endings of words that require another word
	hasModel  bool   // the fitted model decides if the lists do not
}

// lexiconFor returns the lexicon of a language (BCP 47): English if the language is empty,
// and an empty one if it is not supported.
func lexiconFor(language string) lexicon {
	primary := language
	for i, r := range language {
		if r == '-' || r == '_' {
			primary = language[:i]
			break
		}
	}
	switch primary {
	case "", "en":
		return english()
	case "de":
		return german()
	case "es":
		return spanish()
	case "fr":
		return french()
	case "ru":
		return russian()
	case "kk":
		return kazakh()
	default:
		return lexicon{}
	}
}

func english() lexicon {
	return lexicon{
		open: "a an the and or but because so if when while although though unless until since than as that which who whose whom where " +
			"to of in on at for from with without by about into onto over under between during through after before against toward " +
			"my your his her its our their this these those some any every each another " +
			"i we they he she is are was were am be been being i'm we're they're you're he's she's it's there's that's what's " +
			"have has had i've we've will would i'll i'd we'd we'll can could should may might must shall do does did don't doesn't didn't " +
			"can't couldn't won't wouldn't isn't aren't wasn't want wanted need needed like going gonna wanna trying got " +
			"very quite also just actually probably usually like maybe perhaps um uh not only even more my called named says said " +
			"tell give send put make let get know think thought guess believe wondering how why what",
		fillers:   "um uh er erm hmm hm mm ah eh",
		openers:   "well so like",
		pointers:  "that this those these",
		governs:   "for about like with of at from than after before by check do want need see fix change cancel understand take get try use mean",
		particles: "on in over off through",
		moves:     "go goes going went carry move moved hold log sign turn turned switch keep put get got give gave",
		compares:  "than as",
		closers:   "please|thanks|thank you|thank you very much|thanks a lot|bye|goodbye|bye bye|that's all|that is all|that's it|that's it for now|nothing else|i'm done|no thanks|that'll be all|go ahead|over to you|have a nice day|you know what i mean|sounds good|that's fine|never mind",
		yes:       "yes no yeah yep yup nope nah sure okay ok right correct exactly absolutely definitely certainly indeed maybe fine alright never",
		subjects:  "i you he she it we they there this that who i'm it's that's there's we're they're i've i'd i'll we'd we'll nobody somebody everybody",
		digits:    "zero oh one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred double triple",
		spelling:  "at dot dash underscore hyphen slash",
		domains:   "com org net de io co uk edu gov info me",
		asking:    "what when where which who whom whose why how tell describe explain",
		deciding:  "is are was were do does did has have am isn't aren't don't doesn't didn't haven't hasn't can could would will shall may should",
		numbers:   "number|code|zip|postcode|spell|spelling|email|e-mail|digits|date of birth|birthday|account|address|iban|extension",
		confirms:  "correct|right",
		or:        "or",
		hinges:    "if when because although unless while",
		hasModel:  true,
	}
}

func german() lexicon {
	return lexicon{
		open: "und oder aber weil dass wenn als ob sondern denn damit obwohl während bevor nachdem falls wie " +
			"der die das den dem des ein eine einen einem einer eines mein meine meinen meinem meiner dein deine ihr ihre ihren ihrem unser unsere kein keine keinen dieser diese dieses diesen " +
			"in im am an auf aus bei mit nach von vom zu zum zur für über unter vor hinter neben zwischen durch gegen ohne um seit bis " +
			"ich wir er bin ist sind war waren habe hat haben hatte hätte werde wird würde kann könnte können möchte will muss soll sollte darf brauche suche " +
			"sehr auch noch nur schon mal etwa ungefähr so sogar also dann",
		fillers:  "äh ähm öh hm hmm mm tja also naja",
		closers:  "bitte|danke|vielen dank|danke schön|tschüss|auf wiederhören|das ist alles|das war's|das wars|mehr nicht|sonst nichts|gerne|bis dann|alles klar|passt so|schönen tag noch",
		yes:      "ja nein nee doch klar genau richtig okay ok stimmt natürlich gern gerne sicher nö jawohl",
		subjects: "ich du er sie es wir ihr man das der die wer jemand niemand",
		digits:   "null eins ein zwei zwo drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert doppel",
		spelling: "at punkt minus unterstrich bindestrich wie",
		domains:  "de com org net at ch eu info",
		asking:   "was wann wo wer wen wem wessen warum wieso weshalb wie welche welcher welches welchen woher wohin wofür wieviel",
		numbers:  "nummer|postleitzahl|buchstabieren|e-mail|email|geburtsdatum|code|iban|adresse|vorwahl|ziffern",
		confirms: "richtig|korrekt|stimmt|noch aktuell",
		or:       "oder",
		hinges:   "wenn weil obwohl falls als sobald",
	}
}

func spanish() lexicon {
	return lexicon{
		open: "y e o u pero porque que si cuando aunque como mientras pues sino donde para por con sin de del a al en entre sobre hasta desde hacia según contra " +
			"el la los las un una unos unas mi mis tu tus su sus nuestro nuestra este esta estos estas ese esa cada otro otra algún alguna " +
			"yo es son era está están estoy estaba soy he ha han había quiero quería quisiera necesito puedo podría puede debo tengo voy me te se le muy más tan también solo",
		fillers:  "eh em este pues bueno mmm mm hm",
		closers:  "por favor|gracias|muchas gracias|adiós|hasta luego|eso es todo|nada más|está bien|de acuerdo|vale|dígame|perfecto|muy amable",
		yes:      "sí si no claro vale correcto exacto bueno perfecto cierto nunca ok okay",
		subjects: "yo tú él ella nosotros ellos ellas usted ustedes esto eso quiero necesito tengo vivo llamo prefiero puedo me se está es hay he ha",
		digits:   "cero uno una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien doble",
		spelling: "arroba punto guion guión barra",
		domains:  "com es org net mx ar",
		asking:   "qué que cuándo cuando dónde donde quién quien cómo como cuál cual cuánto cuántos cuánta cuántas", //nolint:misspell // not English
		numbers:  "número|código|deletrear|deletrea|correo|e-mail|email|fecha de nacimiento|teléfono|dirección|dígitos",
		confirms: "correcto|es cierto|verdad|sigue siendo",
		or:       "o u",
		hinges:   "si cuando aunque porque como",
	}
}

func french() lexicon {
	return lexicon{
		open: "et ou mais parce que qui quand si comme car donc puisque lorsque où dont afin avec sans de du des d à au aux en dans sur sous pour par chez vers entre depuis pendant avant après contre " +
			"le la les l un une mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ce cet cette ces quelques chaque " +
			"je j il elle on nous ils elles suis est sont étais était ai as a avons avez ont avais veux voudrais veut peux pourrais peut dois besoin vais très plus aussi trop me te se ne c'est j'ai qu c",
		fillers:  "euh heu hum hm mm ben bah alors bon",
		closers:  "s'il vous plaît|s'il te plaît|merci|merci beaucoup|au revoir|c'est tout|rien d'autre|d'accord|très bien|bonne journée|c'est bon|ça marche",
		yes:      "oui non ouais si d'accord ok okay bien exactement exact correct certainement jamais absolument voilà", //nolint:misspell // not English
		subjects: "je j' tu il elle on nous vous ils elles c'est ça cela j'ai j'habite j'aimerais personne",
		digits:   "zéro un une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize vingt trente quarante cinquante soixante cent double", //nolint:misspell // not English
		spelling: "arobase point tiret underscore slash",
		domains:  "fr com org net be ch",
		asking:   "que quoi quand où qui pourquoi comment quel quelle quels quelles combien",
		numbers:  "numéro|code|épeler|épelez|e-mail|email|mail|date de naissance|téléphone|adresse|chiffres",
		confirms: "correct|c'est bien|exact|toujours",
		or:       "ou",
		hinges:   "si quand parce lorsque comme",
	}
}

func russian() lexicon {
	return lexicon{
		open: "и а но или что чтобы потому поэтому если когда пока хотя как который которая которое которые где куда либо " +
			"в во на с со к ко у о об от до из изо за под над при про для без через между перед после около по из-за кроме " +
			"мой моя моё мои мою моего моей твой ваш ваша ваше ваши наш наша этот эта эту этого этой тот та ту один одна одну свой свою " +
			"я мы хочу хотел хотела хотелось могу мог могла надо нужно нужен нужна нужны буду будет очень ещё еще тоже также только самый даже не ни чем",
		fillers:  "э эээ эм ммм мм хм ну вот значит короче типа",
		closers:  "пожалуйста|спасибо|большое спасибо|спасибо большое|до свидания|всего доброго|это всё|это все|всё|больше ничего|хорошо|договорились|понятно|слушаю вас|алло",
		yes:      "да нет ага угу конечно верно правильно точно хорошо ладно ок окей никогда неа",
		subjects: "я ты он она оно мы вы они это мне меня нам нас никто кто у",
		digits:   "ноль нуль один одна два две три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто сто двести триста восемьсот девятьсот",
		spelling: "собака точка тире дефис подчёркивание",
		domains:  "ру ru com ком net орг kz",
		asking:   "что когда где куда кто кого кому почему зачем как какой какая какое какие какую сколько чей откуда",
		numbers:  "номер|код|индекс|по буквам|почту|почта|e-mail|email|дату рождения|дата рождения|адрес|цифры|телефон|иин",
		confirms: "верно|правильно|так ли|всё ещё",
		or:       "или",
		hinges:   "если когда потому пока хотя",
	}
}

func kazakh() lexicon {
	return lexicon{
		open: "және мен бен пен бірақ немесе әлде сондықтан өйткені себебі егер үшін туралы сияқты дейін кейін соң бойынша арқылы " +
			"менің сенің сіздің біздің оның олардың бұл мына сол осы бір өте тағы әрі да де та те ең",
		fillers:  "ээ эмм мм хм жаңағы әлгі сосын",
		closers:  "рахмет|рақмет|көп рахмет|сау болыңыз|сау бол|болды|осымен бітті|жарайды|тыңдап тұрмын|алло|өтінемін",
		yes:      "иә ия жоқ әрине дұрыс жарайды болады рас ешқашан мақұл",
		subjects: "",
		digits:   "нөл бір екі үш төрт бес алты жеті сегіз тоғыз он жиырма отыз қырық елу алпыс жетпіс сексен тоқсан жүз",
		spelling: "нүкте сызықша ит",
		domains:  "kz кз com ком ru",
		asking:   "не қашан қайда кім кімге неге қалай қандай қанша неше қай",
		numbers:  "нөмір|код|поштаңыз|пошта|мекенжай|жсн|туған күн|әріптеп|телефон",
		confirms: "дұрыс па|рас па",
		or:       "әлде немесе",
		hinges:   "егер өйткені",
		endings:  "мын мін бын бін пын пін сың сің сыз сіз ды ді ты ті дым дім тым тім дық дік тық тік йық йік ады еді йды йді ған ген қан кен керек бар жоқ ңыз ңіз ма ме ба бе па пе шы ші",
		hanging:  "ның нің дың дің тың тің ып іп",
	}
}
