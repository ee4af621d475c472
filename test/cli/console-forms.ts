// Sends the forms of the console.

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

export function post(url: string, fields: Record<string, string>): Promise<Response> {
  return fetch(url, { method: 'POST', redirect: 'manual', headers: FORM, body: String(new URLSearchParams(fields)) });
}

/** Returns the path to which the console redirects, or null if it refuses the sign-in. */
export async function signIn(url: string, email: string, password: string): Promise<string | null> {
  const reply = await post(`${url}/console/sign-in`, { email, password });
  await reply.text();
  return reply.headers.get('location');
}
