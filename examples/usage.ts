// Adds up what was used and spent in the last 30 days, and shows the latest calls of models: GET /usage/{tenant}, GET /usage/{tenant}/costs
// and GET /usage/{tenant}/calls. Run it with: node examples/usage.ts
// With curl: curl -s "$ANNALS_URL/usage/demo?from=2026-11-01&to=2026-11-30" -H "Authorization: Bearer $TOKEN"
import { demoClient } from './annals.ts';

const { usage } = demoClient('usage.usage_read');
const days = await usage.byDay();
for (const measure of ['entries', 'bytes', 'requests', 'inputTokens', 'outputTokens'] as const) {
  console.log(`${measure}: ${days.reduce((sum, day) => sum + day[measure], 0)}`);
}
for (const { name, calls, costUsd } of await usage.costs({ by: 'model' })) {
  console.log(`${name}: ${calls} calls, $${costUsd}`);
}
for (const { at, model, inputTokens, outputTokens } of (await usage.calls({ sort: '_id:DESC', pageSize: 5 })).items) {
  console.log(at, model, inputTokens, outputTokens);
}
