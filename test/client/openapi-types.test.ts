import { expect, onTestFinished, test } from 'vitest';
import { type DescribedSchemas, describedSchemas, schemasOf } from '../../clients/typescript/described-schemas.ts';
import { startTestRecorder } from '../support/server/recorder.ts';
import { startTestServer } from '../support/server/server.ts';

test('the types of the client are made from what a service and a recorder that run describe', async () => {
  const server = await startTestServer();
  onTestFinished(() => server.close());
  const recorder = await startTestRecorder(server);
  onTestFinished(() => recorder.close());
  const read = async ({ baseUrl }: { baseUrl: string }): Promise<DescribedSchemas> =>
    JSON.parse(await (await fetch(`${baseUrl}/openapi.json`)).text());
  expect(await describedSchemas()).toEqual(schemasOf(await read(server), await read(recorder)));
});
