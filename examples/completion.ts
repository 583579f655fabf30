// Generates a completion: POST /ai-service/{tenant}/completions, and shows what is left of the quota of the shared
// token: GET /ai-service/{tenant}/completions/usage. Run it with, for instance:
// node examples/completion.ts 'Write one sentence about change histories.'
// With curl: curl -s "$ANNALS_URL/ai-service/demo/completions" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
//   -H 'Idempotency-Key: one-of-your-own' -d '{"messages":[{"role":"USER","content":"Hello"}]}'
import { ApiError } from '@annals/client';
import { demoClient } from './annals.ts';

const [content = 'Write one sentence about change histories.'] = process.argv.slice(2);
const { completions } = demoClient('ai.completion_manage');

try {
  // The client makes an Idempotency-Key and keeps it when it repeats the call: the tokens are spent once.
  const { result, finishReason } = await completions.create({
    messages: [
      { role: 'SYSTEM', content: 'You answer in plain words.' },
      { role: 'USER', content },
    ],
  });
  console.log(result, finishReason);
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  console.log(`${error.status} ${error.type}: ${error.message}`);
}
console.log(await completions.usage());
