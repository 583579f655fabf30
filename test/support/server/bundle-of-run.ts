import { bundleOfCheckout } from '../../../build/checkout.js';
import { packageFolder } from '../../../src/core/package-folder.ts';

/** Makes the bundle once, before the processes that the tests start look for it. */
export async function setup(): Promise<void> {
  await bundleOfCheckout(packageFolder());
}
