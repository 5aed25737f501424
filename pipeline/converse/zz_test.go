package converse_test
import ("testing";"testing/synctest";"time";"os";"io";"github.com/parley-voice/parley/pipeline";"github.com/parley-voice/parley/pipeline/fake";"github.com/parley-voice/parley/pipeline/pipetest")
func TestZZ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := fake.Typical()
		script.Reply = func([]fake.Message) string { return "wmwaba zvefb qqabc uvwxa babab cdcda wmwab onetw threef fourab fiveab sixabc sevena eighta ninena" }
		st := pipetest.New(script)
		st.Agent.Journal = func(string) (io.WriteCloser, error) { return os.Create("/tmp/j.jsonl") }
		c := talkOn(t, st, pipeline.Brief{Greeting: "hello this is parley", Engines: pipetest.Fake()})
		c.Echo(180*time.Millisecond, 0.1)
		c.pass(2 * time.Second)
		c.say("can you tell me when you close on friday or tuesday")
		c.pass(7 * time.Second)
		t.Log(c.words())
		c.hangup()
	})
}
