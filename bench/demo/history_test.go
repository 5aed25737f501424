package demo

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/media/tone"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
)

func TestHistory(t *testing.T) {
	for _, now := range []time.Time{
		time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC), time.Date(2026, 3, 9, 23, 59, 0, 0, time.UTC), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		all := History(now)
		if !reflect.DeepEqual(all, History(now)) {
			t.Error("two histories of a day differ")
		}
		seen, scenes, campaign := map[string]bool{}, map[string]int{}, 0
		for _, p := range all {
			if p.Campaign {
				campaign++
			}
			scenes[p.Scene]++
			if age := now.Sub(p.At); age <= 0 || age > (pastDays+1)*24*time.Hour || p.At.Hour() < 10 || p.At.Hour() >= 19 {
				t.Errorf("a call at %v, now %v", p.At, now)
			}
			if seen[p.To] {
				t.Errorf("two calls to %s", p.To)
			}
			seen[p.To] = true
		}
		if len(all) != pastCalls || campaign != reminders {
			t.Errorf("%d calls, %d of the campaign", len(all), campaign)
		}
		for _, s := range append(Scenes(), VoicemailScene(), Scene{}) { // the last one: nobody answered
			if scenes[s.Name] == 0 {
				t.Errorf("no call of scene %q", s.Name)
			}
		}
		for _, c := range RunningContacts() {
			if seen[c.Phone] || c.Name == "" {
				t.Errorf("the running campaign has %+v again", c)
			}
			seen[c.Phone] = true
		}
		for _, to := range Blocked() {
			if seen[to] {
				t.Errorf("%s is blocked and called", to)
			}
		}
		for to := range seen {
			if len(to) != 12 || !strings.HasPrefix(to[5:], "55501") {
				t.Errorf("%s is no fictional number", to)
			}
		}
	}
}

func TestRecord(t *testing.T) {
	scene := Scenes()[0]
	sound, err := Voices{}.Record(t.Context(), scene)
	if err != nil {
		t.Fatal(err)
	}
	if len(sound.Lines) != len(scene.Lines) || len(sound.WAV) != 44+int(sound.Length*soundRate/time.Second)*4 {
		t.Errorf("%d lines, %d bytes, %v", len(sound.Lines), len(sound.WAV), sound.Length)
	}
	for i, l := range sound.Lines {
		at := 44 + 4*int(l.Start*soundRate/time.Second)
		var heard [2][]int16
		for k := range int((l.End - l.Start) * soundRate / time.Second) {
			for side := range heard {
				b := sound.WAV[at+4*k+2*side:]
				heard[side] = append(heard[side], int16(uint16(b[0])|uint16(b[1])<<8))
			}
		}
		speaker := 0
		if l.Role == pipeline.RoleAgent {
			speaker = 1
		}
		if l.Text != scene.Lines[i] || l.Turn != i/2 || tone.Level(heard[speaker]) < -45 || tone.Level(heard[1-speaker]) > -80 {
			t.Errorf("line %d: %+v, levels %v and %v", i, l, tone.Level(heard[0]), tone.Level(heard[1]))
		}
	}
}

func TestPeopleOfSurvey(t *testing.T) {
	for said, want := range map[string]string{"hello": "How many books", "about ten": "on paper or", "on paper": "Goodbye", "sorry no time": "Goodbye"} {
		got, _ := answerVisitor([]fakeprovider.Message{{Role: "system", Content: "You ask for the Reading Survey."}, {Role: "user", Content: said}})
		if !strings.Contains(got, want) {
			t.Errorf("%q gets %q, want %q", said, got, want)
		}
	}
}
