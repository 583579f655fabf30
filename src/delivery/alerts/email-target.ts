import { randomUUID } from 'node:crypto';
import { sampleChange } from '../batches/sample-change.ts';
import { type EmailMembers, EmailTarget } from '../targets/schemas.ts';
import type { Sending, Target, TargetMembers } from '../targets/target.ts';
import { type MailOutcome, resultOf } from './alert-attempts.ts';
import { alertMail } from './alert-mail.ts';
import type { AlertThreshold } from './alert-state.ts';

export interface AlertMessage {
  readonly tenant: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly messageId: string;
}

/** The members of an e-mail target, with defaults. */
export function alertOf(target: TargetMembers): { to: string; threshold: AlertThreshold; withValues: boolean } {
  const { to, threshold = { count: 1, minutes: 1 }, values = false } = target as TargetMembers & EmailMembers;
  return { to, threshold, withValues: values };
}

const noMailServer = 'E-mails wait: the operator has not set SMTP_URL and MAIL_FROM.';

export interface EmailTargetOptions {
  /** Sends an e-mail once. Undefined if no mail server is configured, so that e-mails wait. */
  send: (message: AlertMessage) => Promise<MailOutcome | undefined>;
  baseUrl: string | undefined;
  now: () => number;
}

/** Sends an e-mail when the threshold of matching changes is reached. */
export function createEmailTarget({ send, baseUrl, now }: EmailTargetOptions): Target {
  return {
    type: 'email',
    schema: EmailTarget,
    secrets: [],
    maxAge: 'P1D',
    isReplayed: false,
    // Erasures list positions, which e-mails do not show.
    receivesErasures: false,
    hostOf: ({ to }) => String(to),
    check: () => [],

    async test({ tenant, subscription, target }: Sending) {
      const { to, withValues } = alertOf(target);
      const change = sampleChange(now());
      const alert = { after: { position: 0, fingerprint: 0 }, count: 1, from: change.at, to: change.at };
      const content = { tenant, name: subscription, q: '', alert, changes: [change], withValues, baseUrl };
      const { subject, text } = alertMail(content);
      const sample = 'This is a sample. Nothing was changed.';
      const messageId = `<alert-sample.${randomUUID()}@annals>`;
      const outcome = await send({
        tenant,
        to,
        subject: `Sample: ${subject}`,
        text: `${sample}\n\n${text}`,
        messageId,
      });
      return outcome === undefined ? { outcome: 'failed', error: noMailServer } : resultOf(outcome);
    },
  };
}
