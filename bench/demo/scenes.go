package demo

// A Scene is a conversation of the demo's history. All calls of a scene share its recording.
type Scene struct {
	Name, Agent string
	// Lines alternate between callee and agent. The callee begins.
	Lines     []string
	Summary   string
	Sentiment string
	Success   bool
	Weight    int // share of the agent's answered calls
}

// survey is a part of the survey agent's prompt.
const survey = "Reading Survey"

// Scenes returns the conversations of the demo's history.
func Scenes() []Scene { return append(bookshopScenes(), otherScenes()...) }

func bookshopScenes() []Scene {
	return []Scene{
		{
			Name: "order-ready", Agent: "bookshop", Weight: 4, Success: true, Sentiment: "positive",
			Lines: []string{
				"Hello?", "Hello, this is Harbor Books. The book you ordered, The Odyssey, has arrived.",
				"Oh, great. How long do you keep it for me?", "We keep it until Saturday. We are open from 9 to 6.",
				"I will come tomorrow after work.", "Perfect. It is at the counter under your name. Anything else?",
				"No, thank you. Bye.", "Thank you for calling Harbor Books. Goodbye!",
			},
			Summary: "The ordered copy of The Odyssey has arrived. The customer picks it up tomorrow after work.",
		},
		{
			Name: "order-delayed", Agent: "bookshop", Weight: 2, Sentiment: "neutral",
			Lines: []string{
				"Yes, hello?", "Hello, this is Harbor Books. Your copy of Emma is delayed by about a week.",
				"A week? I need it as a gift on Friday.", "I am sorry. I can hold a copy of Persuasion for you instead.",
				"No, then please cancel the order.", "I canceled it. You pay nothing. Goodbye!",
			},
			Summary: "The order of Emma is delayed by a week. The customer needed it by Friday and canceled it.",
		},
		{
			Name: "reading", Agent: "bookshop", Weight: 2, Success: true, Sentiment: "positive",
			Lines: []string{
				"Hello.", "Hello, this is Harbor Books. We have a reading on Thursday at 7. Shall I keep a seat for you?",
				"Who is reading?", "Ruth Ellison reads from her new novel, Low Tide.",
				"Then two seats, please.", "Two seats are reserved for you. See you on Thursday!",
			},
			Summary: "The customer reserved two seats for the reading on Thursday at 7.",
		},
	}
}

func otherScenes() []Scene {
	return []Scene{
		{
			Name: "confirmed", Agent: "clinic", Weight: 5, Success: true, Sentiment: "positive",
			Lines: []string{
				"Hello?", "Hello, this is the Lakeside Clinic. You have an appointment tomorrow at 10. Can you come?",
				"Yes, I will be there.", "Thank you, your appointment tomorrow at 10 is confirmed. Please bring your insurance card.",
				"Okay, thanks.", "Goodbye!",
			},
			Summary: "The patient confirmed the appointment tomorrow at 10.",
		},
		{
			Name: "moved", Agent: "clinic", Weight: 3, Success: true, Sentiment: "neutral",
			Lines: []string{
				"Hello, who is this?", "Hello, this is the Lakeside Clinic. You have an appointment tomorrow at 10. Can you come?",
				"Tomorrow I have to work. Can I come another day?", "I can move it to Friday at 2, or cancel it. Which would you like?",
				"Friday is fine.", "I moved your appointment to Friday at 2. See you then!",
			},
			Summary: "The patient cannot come tomorrow. The appointment was moved to Friday at 2.",
		},
		{
			Name: "canceled", Agent: "clinic", Weight: 1, Sentiment: "negative",
			Lines: []string{
				"Hello?", "Hello, this is the Lakeside Clinic. You have an appointment tomorrow at 10. Can you come?",
				"No, please cancel it. I found another doctor.", "Your appointment is canceled. Call us when you would like another one.",
			},
			Summary: "The patient canceled the appointment and has another doctor.",
		},
		{
			Name: "answered", Agent: "survey", Weight: 3, Success: true, Sentiment: "positive",
			Lines: []string{
				"Hello?", "Hello, this is the Reading Survey. I have two short questions. How many books did you read this year?",
				"About twelve, I think.", "That is a lot. Do you read on paper or on a screen?",
				"Mostly on paper.", "Thank you for your answers. Goodbye!",
			},
			Summary: "The person read about twelve books this year, mostly on paper.",
		},
		{
			Name: "refused", Agent: "survey", Weight: 2, Sentiment: "negative",
			Lines: []string{
				"Yes?", "Hello, this is the Reading Survey. I have two short questions. How many books did you read this year?",
				"Sorry, I have no time for this.", "I understand. Have a good day. Goodbye!",
			},
			Summary: "The person had no time for the survey.",
		},
	}
}

// VoicemailScene is the conversation of calls that a machine answers.
func VoicemailScene() Scene {
	return Scene{
		Name: "voicemail", Summary: "A voicemail greeting answered. No message was left.", Sentiment: "neutral",
		Lines: []string{"You have reached my voicemail. Please leave a message after the tone."},
	}
}

// people returns the names of the people that the demo calls.
func people() (first, last []string) {
	first = []string{
		"Alice", "Benjamin", "Carmen", "David", "Elena", "Frank", "Grace", "Henry", "Isabel", "James", "Karen", "Luis", "Maria", "Noah",
		"Olivia", "Patrick", "Quinn", "Rosa", "Samuel", "Teresa", "Victor", "Wendy", "Aisha", "Kenji",
	}
	last = []string{
		"Adams", "Bennett", "Chavez", "Diaz", "Edwards", "Foster", "Garcia", "Hughes", "Ito", "Jackson", "Kim", "Lopez", "Miller",
		"Nguyen", "Ortiz", "Parker", "Reed", "Sanders", "Turner", "Walker", "Young",
	}
	return first, last
}

// surveyRules returns the answers of the fake model to people of the running campaign.
func surveyRules() []rule {
	return []rule{
		{[]string{"bye", "goodbye", "thanks"}, "Thank you for your answers. Goodbye!"},
		{[]string{"no", "time", "busy", "sorry"}, "I understand. Have a good day. Goodbye!"},
		{[]string{"paper", "screen", "both"}, "Thank you for your answers. Goodbye!"},
		{[]string{"none", "two", "three", "five", "six", "ten", "twelve", "many"}, "Thank you. Do you read on paper or on a screen?"},
		{nil, "How many books did you read this year?"},
	}
}
