// The token stands behind the `#` of the address, which browsers send to nobody. It is taken from there, and goes.
function logIn() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  const form = document.getElementById("login");
  form.elements.token.value = token;
  form.submit();
}

logIn();
addEventListener("hashchange", logIn); // the address was put into a tab that shows this page: nothing is loaded anew
