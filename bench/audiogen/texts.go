package audiogen

import (
	_ "embed"
	"strings"
)

//go:embed english.txt
var otherEnglish string

// Texts returns the sentences of the benchmarks in a language.
func Texts(language string) []string {
	switch language {
	case "de":
		return []string{
			"Ja, das passt mir gut.",
			"Können Sie mir bitte sagen, wann die Lieferung kommt?",
			"Nein.",
			"Ich wohne in der Schillerstraße, im dritten Stock.",
		}
	case "es":
		return []string{
			"Sí, claro, dígame.",
			"Quería cambiar la fecha de mi reserva para el martes.",
			"No, gracias.",
			"¿Qué precio tiene el envío a Barcelona?",
		}
	case "fr":
		return []string{
			"Oui, je vous écoute.",
			"Je voudrais savoir si le magasin est ouvert demain matin.",
			"Non merci.",
			"Pouvez-vous répéter le numéro, s'il vous plaît?",
		}
	case "ru":
		return []string{
			"Да, слушаю вас.",
			"Скажите, пожалуйста, когда приедет мастер.",
			"Нет, спасибо.",
			"Мне нужно перенести запись на четверг.",
		}
	case "kk":
		return []string{"Иә, тыңдап тұрмын.", "Маған ертең таңертең қоңырау шалыңызшы.", "Жоқ, рахмет.", "Тапсырысым қашан келеді екен?"}
	default:
		return []string{
			"Yes, that works for me.",
			"Could you tell me when the parcel is going to arrive?",
			"No.",
			"I would like to move my appointment to Thursday afternoon.",
		}
	}
}

// OtherTexts returns other sentences than Texts, for training and for babble.
func OtherTexts(language string) []string {
	switch language {
	case "de":
		return []string{"Guten Tag, hier spricht Frau Schneider aus Hamburg.", "Das habe ich schon letzte Woche bezahlt.", "Genau."}
	case "es":
		return []string{"Buenos días, llamo por la factura del mes pasado.", "Todavía no ha llegado nadie a repararlo.", "Vale."}
	case "fr":
		return []string{"Bonjour, je téléphone au sujet de ma commande.", "Le plombier devait passer hier après-midi.", "D'accord."}
	case "ru":
		return []string{"Здравствуйте, я звоню по поводу доставки.", "Мы договаривались на прошлой неделе.", "Хорошо."}
	default:
		return strings.Split(strings.TrimSpace(otherEnglish), "\n")
	}
}
