// Adds up what was used in the last 30 days: GET /usage/{tenant}. Run it with: node examples/usage.ts
// With curl: curl -s "$ANNALS_URL/usage/demo?from=2026-11-01&to=2026-11-30" -H "Authorization: Bearer $TOKEN"
import { demoClient } from './annals.ts';

const days = await demoClient('usage.usage_read').usage.byDay();
for (const measure of ['entries', 'bytes', 'requests', 'inputTokens', 'outputTokens'] as const) {
  console.log(`${measure}: ${days.reduce((sum, day) => sum + day[measure], 0)}`);
}
