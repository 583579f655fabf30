// Asks how the service is: GET /health/live and GET /health/ready. Run it with: node examples/health.ts
import { setting } from './token.ts';

for (const path of ['/health/live', '/health/ready']) {
  const response = await fetch(`${setting('ANNALS_URL')}${path}`);
  console.log(path, response.status, await response.text());
}
