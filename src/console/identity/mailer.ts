// The console's emails, and the connection to the mail server. Links begin with `PUBLIC_URL` or, without this
// setting, with the address that Scrip listens on. Links never use the `Host` header of a request, because an attacker
// can choose it.

import { createTransport } from 'nodemailer';

export interface MailSettings {
  /** `smtp://user:password@host:port`, or `smtps://…` */
  readonly smtpUrl: string;
  readonly from: string;
}

const TIMEOUT_MS = 10_000;

/** @param publicUrl returns the origin for links, without a trailing slash */
export function createMailer({ smtpUrl, from }: MailSettings, publicUrl: () => string) {
  const transport = createTransport({
    url: smtpUrl,
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const send = async (to: string, subject: string, text: string) => {
    await transport.sendMail({ from, to: { name: '', address: to }, subject, text, textEncoding: 'quoted-printable' });
  };
  return {
    sendConfirmation: (email: string, token: string) =>
      send(
        email,
        'Confirm your email address',
        `You (or someone using this address) signed up for Scrip. To confirm your email address, open this link within\n24 hours and enter the password you chose:\n\n${publicUrl()}/console/verify/${token}\n\nIf you didn't sign up, ignore this email.\n`,
      ),
    sendAlreadyRegistered: (email: string) =>
      send(
        email,
        'You have already signed up for Scrip',
        `You (or someone using this address) tried to sign up for Scrip, but this address is already in use.\nNothing was changed. To sign in or reset your password, open this link:\n\n${publicUrl()}/console/sign-in\n`,
      ),
    sendPasswordReset: (email: string, token: string) =>
      send(
        email,
        'Reset your password',
        `You (or someone using this address) asked to reset your Scrip password. To choose a new one, open this link\nwithin an hour:\n\n${publicUrl()}/console/reset-password/${token}\n\nIf you didn't ask for this, ignore this email. Your password stays the same.\n`,
      ),
  };
}

export type Mailer = ReturnType<typeof createMailer>;
