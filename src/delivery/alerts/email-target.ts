import { randomUUID } from 'node:crypto';
import { sampleChange } from '../batches/sample-change.ts';
import type { Sending, Target, TargetMembers } from '../targets/target.ts';
import { type MailOutcome, resultOf } from './alert-attempts.ts';
import { alertMail } from './alert-mail.ts';
import type { AlertThreshold } from './alert-state.ts';
import { type EmailMembers, EmailTarget } from './email-schema.ts';

export interface AlertMessage {
  readonly tenant: string;
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly messageId: string;
}

/** The members of a target of this kind, with what is left out. */
export function alertOf(target: TargetMembers): { to: string; threshold: AlertThreshold; withValues: boolean } {
  const { to, threshold = { count: 1, minutes: 1 }, values = false } = target as TargetMembers & EmailMembers;
  return { to, threshold, withValues: values };
}

const noMailServer = 'E-mails wait: the operator has not set SMTP_URL and MAIL_FROM.';

export interface EmailTargetOptions {
  /** Hands an e-mail to the mail server, once. Undefined where the operator has named none, so that e-mails wait. */
  send: (message: AlertMessage) => Promise<MailOutcome | undefined>;
  baseUrl: string | undefined;
  now: () => number;
}

/** An e-mail to a person when so many changes match. */
export function createEmailTarget({ send, baseUrl, now }: EmailTargetOptions): Target {
  return {
    type: 'email',
    schema: EmailTarget,
    secrets: [],
    maxAge: 'P1D',
    isReplayed: false,
    // People read the text of an e-mail, which has no positions.
    tellsErasures: false,
    hostOf: ({ to }) => String(to),
    check: () => [],

    async test({ tenant, subscription, target }: Sending) {
      const { to, withValues } = alertOf(target);
      const change = sampleChange(now());
      const alert = { after: { position: 0, fingerprint: 0 }, count: 1, from: change.at, to: change.at };
      const told = { tenant, name: subscription, q: '', alert, changes: [change], withValues, baseUrl };
      const { subject, text } = alertMail(told);
      const sample = 'This is a sample. Nothing was changed.';
      const messageId = `<alert-sample.${randomUUID()}@annals>`;
      const sent = await send({
        tenant,
        to,
        subject: `Sample: ${subject}`,
        text: `${sample}\n\n${text}`,
        messageId,
      });
      return sent === undefined ? { outcome: 'failed', error: noMailServer } : resultOf(sent);
    },
  };
}
