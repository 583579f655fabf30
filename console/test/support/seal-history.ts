import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import type { TestServer } from '../../../test/support/server/server.ts';

/** Seals all that was recorded, with a key that lasts for the test. */
export async function sealHistory({ context: { db } }: TestServer, tenant: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'annals-console-'));
  makeProofKey(join(folder, 'key'));
  const signer = openSigner(join(folder, 'key'), 'annals.example');
  onTestFinished(async () => {
    signer.newest.close();
    await rm(folder, { recursive: true });
  });
  await givePositions(db, tenant);
  while (await sealPortion(db, tenant, { signer, now: () => Date.now() }));
}
