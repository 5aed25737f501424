package eot

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// A grammar generates clauses. Its content words and patterns were written only for this
// test, after the lexicons were complete. Its function words are those of the language, so
// the lexicons contain them.
type grammar struct {
	subjects, verbs, objects, tails string
	cuts                            string // words after which a speaker may be cut off
}

func grammars() map[string]grammar {
	return map[string]grammar{
		"en": {
			"my neighbour|the driver|we|our plumber|i|your colleague|they", "ordered|returned|painted|forgot|delivered|opened",
			"the green chairs|two boxes|a new kettle|the wrong parcel|some curtains", "|yesterday|last thursday|at noon|without asking", "and|but|because|the|with|to|my|um|that|for",
		},
		"de": {
			"mein nachbar|der fahrer|wir|die firma|ich|der monteur", "bestellte|lieferte|vergaß|öffnete|brachte",
			"die grünen stühle|zwei kisten|den falschen karton|neue vorhänge", "|gestern|am donnerstag|ohne anruf", "und|aber|weil|der|mit|für|meine|äh|dass|zum",
		},
		"es": {
			"mi vecino|el conductor|la empresa|el técnico|mi hermana", "pidió|entregó|olvidó|abrió|trajo",
			"las sillas verdes|dos cajas|el paquete equivocado|unas cortinas", "|ayer|el jueves pasado|sin avisar", "y|pero|porque|la|con|para|mi|eh|que|de",
		},
		"fr": {
			"mon voisin|le livreur|la société|le plombier|ma sœur", "commandait|livrait|oubliait|ouvrait|apportait",
			"les chaises vertes|deux cartons|le mauvais colis|des rideaux", "|hier|jeudi dernier|sans prévenir", "et|mais|parce que|la|avec|pour|mon|euh|que|de",
		},
		"ru": {
			"мой сосед|водитель|наша компания|мастер|моя сестра", "заказал|привёз|забыл|открыл|принёс",
			"зелёные стулья|две коробки|чужую посылку|новые шторы", "|вчера|в прошлый четверг|без звонка", "и|но|потому что|для|с|на|мой|э|что|из",
		},
		"kk": {
			"көршім|жүргізуші|біздің компания|шебер|әпкем", "кеше жасыл орындықтарды|екі қорапты|басқа сәлемдемені|жаңа перделерді", "әкелді|тапсырды|ұмытты|ашты|сатып алды",
			"", "және|бірақ|өйткені|менің|үшін|туралы|ээ|мына",
		},
	}
}

func (g grammar) clause(rnd *rand.Rand) string {
	var words []string
	for _, part := range []string{g.subjects, g.verbs, g.objects, g.tails} {
		all := strings.Split(part, "|")
		words = append(words, all[rnd.IntN(len(all))])
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// TestHeldOut checks that at least 95 % of unseen clauses, complete or cut off, are
// classified correctly in every language.
func TestHeldOut(t *testing.T) {
	for language, g := range grammars() {
		rnd := rand.New(rand.NewPCG(2026, 11))
		right, n := 0, 0
		for range 200 {
			whole := g.clause(rnd)
			cuts := strings.Split(g.cuts, "|")
			cut := whole + " " + cuts[rnd.IntN(len(cuts))]
			for text, finished := range map[string]bool{whole: true, cut: false} {
				n++
				guess := Pause{Text: text, Language: language}.Guess()
				if guess.P >= 0.6 == finished {
					right++
				} else if n-right < 4 {
					t.Logf("%s %q: %+v", language, text, guess)
				}
			}
		}
		t.Logf("%s: %d of %d", language, right, n)
		if right*100 < 95*n {
			t.Errorf("%s: %d of %d are classified correctly", language, right, n)
		}
	}
}
