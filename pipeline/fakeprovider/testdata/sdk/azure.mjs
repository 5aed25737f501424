import sdk from 'microsoft-cognitiveservices-speech-sdk';
import { answer, check, equal, part, pcm, rate, said, sentence, stream, until, ws } from './lib.mjs';

const call = (run) => new Promise(run);

function recognizer(input) {
  const config = sdk.SpeechConfig.fromEndpoint(new URL(`${ws}/stt/speech/universal/v2`), 'key');
  config.speechRecognitionLanguage = 'en-US';
  config.outputFormat = sdk.OutputFormat.Detailed;
  config.setProperty(sdk.PropertyId.Speech_SegmentationSilenceTimeoutMs, '500');
  return new sdk.SpeechRecognizer(config, sdk.AudioConfig.fromStreamInput(input));
}

const format = sdk.AudioStreamFormat.getWaveFormatPCM(rate, 16, 1);

await part('SpeechRecognizer, continuous', async () => {
  const input = sdk.AudioInputStream.createPushStream(format);
  const r = recognizer(input), interim = [], phrases = [], ends = [];
  r.recognizing = (_, e) => interim.push(e.result.text);
  r.recognized = (_, e) => phrases.push(e.result);
  r.canceled = (_, e) => ends.push(`canceled ${e.reason} ${e.errorDetails ?? ''}`);
  r.sessionStopped = () => ends.push('stopped');
  await call((ok, no) => r.startContinuousRecognitionAsync(ok, no));
  await stream((b) => input.write(b.buffer.slice(b.byteOffset, b.byteOffset + b.length)));
  await until(() => phrases.length, 'a phrase', [interim, ends]);
  equal([phrases[0].reason, phrases[0].text], [sdk.ResultReason.RecognizedSpeech, sentence], 'phrase');
  const best = JSON.parse(phrases[0].json).NBest[0];
  check(best.Confidence > 0 && phrases[0].duration > 0, 'details', phrases[0]);
  check(interim.length > 0, 'interim results', interim);
  await call((ok, no) => r.stopContinuousRecognitionAsync(ok, no));
  await until(() => ends.length, 'the end', ends);
  equal(ends, ['stopped'], 'end');
  r.close();
});

await part('SpeechRecognizer, once', async () => {
  const input = sdk.AudioInputStream.createPushStream(format);
  input.write(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + pcm.length));
  input.close();
  const r = recognizer(input);
  const result = await call((ok, no) => r.recognizeOnceAsync(ok, no));
  equal([result.reason, result.text], [sdk.ResultReason.RecognizedSpeech, sentence], 'result');
  r.close();
});

function synthesizer(config) {
  config.speechSynthesisVoiceName = 'en-US-AvaMultilingualNeural';
  config.speechSynthesisOutputFormat = sdk.SpeechSynthesisOutputFormat.Raw16Khz16BitMonoPcm;
  const s = new sdk.SpeechSynthesizer(config, null), words = [];
  s.wordBoundary = (_, e) => words.push(e.text);
  return { s, words };
}

await part('SpeechSynthesizer, text streaming', async () => {
  const { s, words } = synthesizer(sdk.SpeechConfig.fromEndpoint(new URL(`${ws}/cognitiveservices/websocket/v2`), 'key'));
  const request = new sdk.SpeechSynthesisRequest(sdk.SpeechSynthesisRequestInputType.TextStream);
  const done = call((ok, no) => s.speakAsync(request, ok, no));
  for (const text of ['one ', 'two ', 'three']) request.inputStream.write(text);
  request.inputStream.close();
  const result = await done;
  equal(result.reason, sdk.ResultReason.SynthesizingAudioCompleted, `reason (${result.errorDetails})`);
  said('azure', '16000.s16', [Buffer.from(result.audioData)]);
  equal(words, answer.split(' '), 'word boundaries');
  s.close();
});

await part('SpeechSynthesizer, speakTextAsync', async () => {
  const { s, words } = synthesizer(sdk.SpeechConfig.fromHost(new URL(ws), 'key'));
  const result = await call((ok, no) => s.speakTextAsync(answer, ok, no));
  equal(result.reason, sdk.ResultReason.SynthesizingAudioCompleted, `reason (${result.errorDetails})`);
  said('azure-ssml', '16000.s16', [Buffer.from(result.audioData)]);
  equal(words, answer.split(' '), 'word boundaries');
  s.close();
});
process.exit(0);
