// Makes, reads, changes and deletes settings: POST, GET, PUT and DELETE on /configuration/{tenant}/configurations.
// Run it with: node examples/configuration.ts
// With curl: curl -s "$ANNALS_URL/configuration/demo/configurations?keys=exampleSite" -H "Authorization: Bearer $TOKEN"
import { demoClient } from './annals.ts';

const { configurations } = demoClient('configuration.configuration_manage');

await configurations.create([
  { key: 'exampleSite', value: { name: 'Main', taxRate: 0.19 }, description: 'What the storefront shows' },
  { key: 'exampleSecret', value: 'not for everybody', secured: true },
]);
console.log(await configurations.list({ keys: ['exampleSite', 'exampleSecret'] }));
console.log(await configurations.get('exampleSecret'));
const { version } = await configurations.replace('exampleSite', { value: { name: 'Main', taxRate: 0.2 }, version: 1 });
console.log(`exampleSite has the version ${version}`);
await configurations.delete('exampleSite');
await configurations.delete('exampleSecret');
