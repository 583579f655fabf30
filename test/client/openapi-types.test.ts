import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../support/server/package-copy.ts';
import { startTestRecorder } from '../support/server/recorder.ts';
import { startTestServer } from '../support/server/server.ts';

const run = promisify(execFile);
const client = join(import.meta.dirname, '..', '..', 'clients', 'typescript');

interface Document {
  paths: object;
  components: { schemas: object };
}

test('the types of the client are those of the OpenAPI documents', async () => {
  const server = await startTestServer();
  onTestFinished(() => server.close());
  const recorder = await startTestRecorder(server);
  onTestFinished(() => recorder.close());
  const document = (await (await server.call('/openapi.json')).json()) as Document;
  const ofRecorder = (await (await fetch(`${recorder.baseUrl}/openapi.json`)).json()) as Document;
  const folder = await temporaryFolder();
  // The client names its own parameters. The schemas alone make a package of a third of the size.
  const named = Object.entries({ ...ofRecorder.components.schemas, ...document.components.schemas });
  const sorted = Object.fromEntries(named.sort(([one], [other]) => (one < other ? -1 : 1)));
  const schemas = { ...document, paths: {}, components: { schemas: sorted } };
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(schemas));
  const generator = join(client, 'node_modules', 'openapi-typescript', 'bin', 'cli.js');
  await run(process.execPath, [generator, 'openapi.json', '-o', 'openapi.ts'], { cwd: folder });
  const generated = await readFile(join(folder, 'openapi.ts'), 'utf8');
  // After a change of the interface: npx vitest run test/client/openapi-types.test.ts --update
  await expect(generated).toMatchFileSnapshot(join(client, 'src', 'openapi.ts'));
});
